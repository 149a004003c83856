// Fusion of element-wise ops.
//
// Note [What is fused]
// A tree of element-wise ops on floating tensors whose inner results only ops
// of the tree read becomes one node `_FusedElementwise`. It computes the same
// bits as the single ops, but tile by tile, so that intermediate results stay
// in the cache. Since no other node reads the inner results, their delay is not
// visible: the node has all inputs and control inputs of the tree, and is dead
// if one of them is. If only such trees read the columns that a Split makes, as
// in the cell of an LSTM, the trees read the columns from the whole tensor
// themselves, and the Split is removed. For that, a single op may be a tree,
// too. Small tensors gain the cost of running a node for each op. Ops are not
// fused if tensors are known to be tiny, or must be broadcast: then nothing is
// gained. They are not fused either in loops and functions if even the rank is
// unknown: the tensors may be scalars, for which the engine is faster without
// fusion.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/analysis/frames.h"
#include "graph/analysis/topology.h"
#include "graph/node_set.h"
#include "graph/passes/fused_program.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

// On fewer elements the engine is as fast with single ops.
constexpr int64_t kLeastElements = 8;
constexpr size_t kMaxFused = 16;  // ops
// With fewer columns, a row would take longer than its copy in a Split.
constexpr int64_t kLeastColumns = 16;

// REQUIRES: the rank is known
bool is_worth_it(const PartialShape& shape) {
  if (!shape.fully_known()) return shape.rank() > 0;
  return shape.num_elements() >= kLeastElements;
}

// Whether the shape may be `result`, or have a single element.
bool may_fit(const PartialShape& shape, const PartialShape& result) {
  if (!shape.has_rank() || shape.num_elements() == 1) return true;
  return !result.has_rank() || shape.compatible(result);
}

// The conditions that do not depend on its frame and its operands.
bool may_fuse(const Node& node) {
  if (fused_op_name(node).empty() || !is_floating(node.output_dtypes()[0]))
    return false;
  const PartialShape& shape = node.output_shape(0);
  return !shape.has_rank() || is_worth_it(shape);
}

class Fusion {
 public:
  Fusion(Program& program, const FrameMap& frames)
      : program_(program),
        graph_(program.graph),
        frames_(frames),
        detour_(program) {}

  Result<bool> run() {
    TAGFLOW_ASSIGN(const auto order, topological_order(graph_));
    place_.resize(graph_.end_id());
    uses_.resize(graph_.end_id());
    for (size_t i = 0; i < order.size(); ++i) {
      place_[order[i]->id()] = i;
      for (const Endpoint& input : order[i]->inputs())
        ++uses_[input.node->id()];
      for (const Node* control : order[i]->control_inputs())
        outside_.insert(*control);
    }
    for (const Endpoint& fetch : program_.fetches) outside_.insert(*fetch.node);
    for (const Node* target : program_.targets) outside_.insert(*target);
    find_splits(order);
    // From readers to their inputs, so that trees are as tall as possible.
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      Node* const node = *it;
      if (taken_.contains(*node) || !can_fuse(*node)) continue;
      const std::vector<Node*> tree = grow(node);
      if (tree.size() < 2 && !reads_columns(*node)) continue;
      for (const Node* member : tree) taken_.insert(*member);
      TAGFLOW_RETURN_IF_ERROR(fuse(tree));
    }
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  // Splits into columns that only element-wise ops read.
  void find_splits(const std::vector<Node*>& order) {
    for (const Node* node : order) {
      if (splits_columns(*node)) splits_.insert(node);
      for (const Endpoint& input : node->inputs())
        if (splits_.contains(input.node) &&
            (!can_fuse(*node) || !has_same_constraints(*input.node, *node)))
          splits_.erase(input.node);
    }
  }

  bool splits_columns(const Node& node) const {
    if (node.op() != "Split" || node.num_outputs() < 2 || !is_pure(node) ||
        outside_.contains(node))
      return false;
    const Endpoint whole = node.inputs()[1];
    const PartialShape& shape = whole.node->output_shape(whole.port);
    const Endpoint axis = node.inputs()[0];
    NodeList controls;
    if (!shape.has_rank() || shape.rank() == 0 ||
        !is_last_axis(axis, shape.rank()) || !add_dependence(controls, axis))
      return false;
    const int last = shape.rank() - 1;
    return shape.dim(last) % node.num_outputs() == 0 &&
           shape.dim(last) / node.num_outputs() >= kLeastColumns;
  }

  bool reads_columns(const Node& node) const {
    return std::ranges::any_of(node.inputs(), [&](const Endpoint& input) {
      return splits_.contains(input.node);
    });
  }

  bool can_fuse(const Node& node) const {
    if (!may_fuse(node)) return false;
    const PartialShape& shape = node.output_shape(0);
    const bool runs_once =
        program_.name.empty() && frames_.of(node) == FrameId::kRoot;
    return (shape.has_rank() || runs_once) &&
           std::ranges::all_of(node.inputs(), [&](const Endpoint& input) {
             return may_fit(input.node->output_shape(input.port), shape);
           });
  }

  // The root and the nodes that only it needs, in topological order.
  std::vector<Node*> grow(Node* root) const {
    std::vector<Node*> tree = {root};
    std::unordered_map<const Node*, uint32_t> uses;  // inside the tree
    for (size_t i = 0; i < tree.size() && tree.size() < kMaxFused; ++i)
      for (const Endpoint& input : tree[i]->inputs()) {
        Node* const node = input.node;
        if (++uses[node] < uses_[node->id()] || tree.size() == kMaxFused ||
            outside_.contains(*node) || taken_.contains(*node) ||
            !can_fuse(*node) || !alike(*node, *root))
          continue;
        tree.push_back(node);
      }
    std::ranges::sort(tree, {},
                      [&](const Node* node) { return place_[node->id()]; });
    return tree;
  }

  static bool alike(const Node& node, const Node& root) {
    return node.output_dtypes()[0] == root.output_dtypes()[0] &&
           node.output_shape(0) == root.output_shape(0) &&
           has_same_constraints(node, root);
  }

  Status fuse(const std::vector<Node*>& tree) {
    Node* const root = tree.back();
    std::unordered_map<Endpoint, size_t, EndpointHash> numbers;
    std::vector<Endpoint> inputs;
    std::vector<int64_t> columns;
    NodeList controls;
    const auto is_inside = [&](const Endpoint& input) {
      return std::ranges::find(tree, input.node) != tree.end();
    };
    for (const Node* node : tree) {
      for (const Endpoint& input : node->inputs())
        if (!is_inside(input) &&
            numbers.try_emplace(input, inputs.size()).second)
          add_input(input, inputs, columns, controls);
      controls.add(node->control_inputs());
    }
    FusedProgram program(inputs.size());
    for (Node* node : tree) {
      std::vector<size_t> operands;
      for (const Endpoint& input : node->inputs())
        operands.push_back(numbers.at(input));
      numbers.emplace(Endpoint{node, 0},
                      program.add(*node, std::move(operands)).back());
    }
    AttrMap attrs = {{"N", int64_t(inputs.size())},
                     {"T", root->output_dtypes()[0]},
                     {"program", program.lines()},
                     {"names", program.names()}};
    if (std::ranges::any_of(columns, [](int64_t n) { return n != 0; }))
      attrs.emplace("columns", std::move(columns));
    TAGFLOW_ASSIGN(Node * fused,
                   detour_.replace(root, "_FusedElementwise", inputs,
                                   std::move(attrs), controls));
    graph_.set_output_shape(fused, 0, root->output_shape(0));
    return {};
  }

  // Adds the input, or columns of the input of its Split.
  void add_input(const Endpoint& input, std::vector<Endpoint>& inputs,
                 std::vector<int64_t>& columns, NodeList& controls) const {
    const Node& split = *input.node;
    if (!splits_.contains(&split)) {
      inputs.push_back(input);
      columns.insert(columns.end(), {0, 0});
      return;
    }
    const Endpoint whole = split.inputs()[1];
    const PartialShape& shape = whole.node->output_shape(whole.port);
    const int64_t count = shape.dim(shape.rank() - 1) / split.num_outputs();
    inputs.push_back(whole);
    columns.insert(columns.end(), {input.port * count, count});
    controls.add(split.control_inputs());
    add_dependence(controls, split.inputs()[0]);
  }

  Program& program_;
  Graph& graph_;
  const FrameMap& frames_;
  Detour detour_;
  std::vector<size_t> place_;   // by node id, in topological order
  std::vector<uint32_t> uses_;  // by node id, as an input
  NodeSet outside_;             // needed by other edges than inputs
  NodeSet taken_;
  std::unordered_set<const Node*> splits_;  // replaced by columns in trees
};

}  // namespace

Result<bool> fuse_elementwise(Program& program, const PassContext&) {
  if (std::ranges::none_of(program.graph.nodes(),
                           [](const Node* node) { return may_fuse(*node); }))
    return false;
  TAGFLOW_ASSIGN(const FrameMap frames, FrameMap::build(program.graph));
  return Fusion(program, frames).run();
}

}  // namespace tagflow::graph
