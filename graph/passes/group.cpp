// Groups of element-wise ops.
//
// Note [What is a group]
// Trees of element-wise ops (Note [What is fused]) on floating tensors of one
// shape that feed each other, or read columns of one tensor, become one node
// `_FusedElementwise`. Other nodes may read the inner results, which become
// outputs of the node. So the gates of a recurrent cell, all of which a
// gradient reads, are one node, and so are the ops of their gradients. If only
// a ConcatV2 of columns reads some results, the node writes them to their
// place, and the ConcatV2 is removed.
// The node waits for all inputs of its ops, and all outputs are dead if one
// input is. So all ops of a group are live under the same conditions (Note
// [Liveness]), and none of them depends on another's output through nodes
// outside of the group. Nor may an input wait for an output in ways that the
// graph does not show, such as by a queue or another device. Nodes are visited
// in an order in which candidates come as late as possible, and then all that
// are ready: so as many inputs as possible are available when a group runs.
#include <algorithm>
#include <unordered_map>

#include "graph/analysis/frames.h"
#include "graph/analysis/polls.h"
#include "graph/analysis/topology.h"
#include "graph/analysis/whole_loops.h"
#include "graph/node_set.h"
#include "graph/passes/fused_program.h"
#include "graph/passes/passes.h"
#include "graph/passes/readers.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kLeastOfGroup = 8;  // elements
// Below a kernel's kMostFused, so that a layer has room for more.
constexpr size_t kMaxLines = 48, kMaxInputs = 48;

// Whether the node may be part of a group, for any inputs.
bool is_candidate(const Node& node) {
  if (node.num_outputs() != 1 || !is_floating(node.output_dtypes()[0]))
    return false;
  if (!is_fused(node) && fused_op_name(node).empty()) return false;
  const PartialShape& shape = node.output_shape(0);
  return shape.has_rank() && shape.rank() > 0 &&
         (!shape.fully_known() || shape.num_elements() >= kLeastOfGroup);
}

class Grouping {
 public:
  Grouping(Program& program, const FrameMap& frames, const PassContext& context)
      : program_(program),
        graph_(program.graph),
        frames_(frames),
        context_(context),
        facts_(find_facts(program.graph, frames)),
        readers_(program),
        detour_(program) {}

  Result<bool> run() {
    place_.resize(graph_.end_id());
    group_of_.resize(graph_.end_id());
    uses_.resize(graph_.end_id());
    const LastWaits last(program_);
    for (const Node* node : graph_.nodes()) {
      for (const Endpoint& input : node->inputs()) ++uses_[input.node->id()];
      if (last.contains(*node)) continue;
      for (const Node* control : node->control_inputs())
        awaited_.insert(*control);
    }
    for (const Endpoint& fetch : program_.fetches)
      if (fetch.node != nullptr) ++uses_[fetch.node->id()];
    for (const Node* target : program_.targets) awaited_.insert(*target);
    nodes_.resize(graph_.end_id());
    for (Node* node : graph_.nodes()) nodes_[node->id()] = node;
    link_things();
    const std::vector<Node*> order = candidates_last();
    for (size_t i = 0; i < order.size(); ++i) place_[order[i]->id()] = i;
    find_hidden_ways();
    for (Node* node : order)
      if (may_be_grouped(*node) && !unknown_.contains(*node)) add(node);
    for (const Group& group : groups_)
      if (group.nodes.size() > 1) TAGFLOW_RETURN_IF_ERROR(fuse(group));
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  bool may_be_grouped(const Node& node) const {
    return is_candidate(node) && !awaited_.contains(node) &&
           uses_[node.id()] > 0 &&
           facts_.whole_loops[size_t(frames_.of(node))].empty();
  }

  // All nodes by id, and then the ends of frames, when all of their iterations
  // are over: an Exit may wait for any node of the loop, since the number of
  // concurrent iterations is limited.
  using Thing = uint32_t;
  using Things = std::vector<std::vector<Thing>>;

  Thing end_of(FrameId frame) const {
    return Thing(graph_.end_id() + size_t(frame));
  }

  // The direct successors of each thing, and those over back edges.
  void link_things() {
    next_.resize(graph_.end_id() + frames_.frames().size());
    iterates_.resize(next_.size());
    for (const Node* node : graph_.nodes()) {
      const Thing own = node->id();
      for (size_t i = 0; i < node->inputs().size(); ++i)
        (is_back_edge(*node, i) ? iterates_
                                : next_)[node->inputs()[i].node->id()]
            .push_back(own);
      for (const Node* control : node->control_inputs())
        next_[control->id()].push_back(own);
      const Thing end = end_of(frames_.of(*node));
      if (node->is_exit())
        next_[end].push_back(own);
      else
        next_[own].push_back(end);
      if (node->is_enter())
        next_[own].push_back(end_of(frames_.output_of(*node)));
    }
    for (const StaticFrame& frame : frames_.frames())
      if (frame.id != FrameId::kRoot)
        next_[end_of(frame.id)].push_back(end_of(frame.parent));
  }

  // Finds the nodes after one that may wait in ways that no edge shows, and the
  // nodes before one that may be waited for.
  void find_hidden_ways() {
    std::vector<Thing> begins, ends, unknown;
    for (const Node* node : graph_.nodes()) {
      if (hides_deadness(*node)) unknown.push_back(node->id());
      if (waits(*node)) begins.push_back(node->id());
      if (may_be_waited_for(*node)) ends.push_back(node->id());
    }
    if (begins.empty()) return;
    Things after(next_.size()), before(next_.size());
    for (const Things* edges : {&next_, &iterates_})
      for (Thing from = 0; from < edges->size(); ++from)
        for (const Thing to : (*edges)[from]) {
          after[from].push_back(to);
          before[to].push_back(from);
        }
    const auto add_nodes = [&](std::vector<Thing> open, const Things& edges,
                               NodeSet& found) {
      std::vector<bool> seen(edges.size());
      for (const Thing thing : open) seen[thing] = true;
      while (!open.empty()) {
        const Thing thing = open.back();
        open.pop_back();
        if (const Node* node = node_of(thing)) found.insert(*node);
        for (const Thing other : edges[thing])
          if (!seen[other]) {
            seen[other] = true;
            open.push_back(other);
          }
      }
    };
    add_nodes(begins, after, after_);
    add_nodes(unknown, after, unknown_);
    add_nodes(ends, before, before_);
  }

  bool waits(const Node& node) const {
    return hides_deadness(node) || context_.may_wait(node);
  }
  // Its body may have any nodes.
  static bool is_call(const Node& node) {
    return node.op().starts_with("_Call");
  }
  // Nothing waits until a variable is changed.
  bool may_be_waited_for(const Node& node) const {
    if (node.op() == "_Send" || is_call(node) || context_.may_wait(node))
      return true;
    return node.op_def().is_stateful && !is_about_variable(node);
  }

  // A topological order without back edges. Loops that depend on their own ends
  // are left out, and so are the nodes after them.
  std::vector<Node*> candidates_last() const {
    std::vector<uint32_t> waits(next_.size());
    std::vector<Node*> order;
    std::vector<Thing> others, candidates;
    const auto enqueue = [&](Thing thing) {
      const Node* node = node_of(thing);
      (node != nullptr && may_be_grouped(*node) ? candidates : others)
          .push_back(thing);
    };
    for (const std::vector<Thing>& readers : next_)
      for (const Thing reader : readers) ++waits[reader];
    for (const Node* node : graph_.nodes())
      if (waits[node->id()] == 0) enqueue(node->id());
    const auto take_all = [&](std::vector<Thing>& from) {
      while (!from.empty()) {
        const Thing thing = from.back();
        from.pop_back();
        if (Node* node = node_of(thing)) order.push_back(node);
        for (const Thing reader : next_[thing])
          if (--waits[reader] == 0) enqueue(reader);
      }
    };
    while (!others.empty() || !candidates.empty()) {
      take_all(others);
      take_all(candidates);
    }
    return order;
  }

  // Null for the end of a frame.
  Node* node_of(Thing thing) const {
    return thing < nodes_.size() ? nodes_[thing] : nullptr;
  }

  struct Group {
    std::vector<Node*> nodes;  // in topological order
    size_t lines = 0, inputs = 0;
    bool is_after = false, is_before = false;  // of some node
  };

  // Adds the node to the first group that allows it, or to a new one.
  void add(Node* node) {
    const std::vector<FusedOperand> operands = fused_operands(*node);
    size_t number = 0;  // of the group, from 1 on
    for (const FusedOperand& operand : operands) {
      size_t found = group_of_[operand.value.node->id()];
      if (const auto seen = columns_.find(operand.value);
          found == 0 && operand.count != 0 && seen != columns_.end())
        found = seen->second;
      if (found == 0 || !may_join(*node, found)) continue;
      number = found;
      break;
    }
    if (number == 0) {
      groups_.emplace_back();
      number = groups_.size();
    }
    Group& group = groups_[number - 1];
    group.nodes.push_back(node);
    group.lines += num_fused_lines(*node);
    group.is_after |= after_.contains(*node);
    group.is_before |= before_.contains(*node);
    group.inputs += operands.size();
    group_of_[node->id()] = number;
    for (const FusedOperand& operand : operands)
      if (operand.count != 0) columns_[operand.value] = number;
  }

  bool may_join(const Node& node, size_t number) {
    const Group& group = groups_[number - 1];
    const Node& like = *group.nodes.front();
    return group.lines + num_fused_lines(node) <= kMaxLines &&
           group.inputs + size_t(node.num_inputs()) <= kMaxInputs &&
           node.output_dtypes()[0] == like.output_dtypes()[0] &&
           node.output_shape(0) == like.output_shape(0) &&
           frames_.of(node) == frames_.of(like) &&
           has_same_constraints(node, like) &&
           facts_.liveness->of(node) == facts_.liveness->of(like) &&
           !((group.is_after || after_.contains(node)) &&
             (group.is_before || before_.contains(node))) &&
           can_wait_with(node, number);
  }

  // Whether all other inputs of the node are available when the group runs,
  // which is at the position of its first node. So all groups have a consistent
  // order, without cycles between them.
  bool can_wait_with(const Node& node, size_t number) const {
    const size_t place = place_of_group(number);
    const auto is_before = [&](const Node& source) {
      const size_t group = group_of_[source.id()];
      return group == number ||
             (group == 0 ? place_[source.id()] : place_of_group(group)) < place;
    };
    return std::ranges::all_of(
               node.inputs(),
               [&](const Endpoint& input) { return is_before(*input.node); }) &&
           std::ranges::all_of(node.control_inputs(), [&](const Node* control) {
             return is_before(*control);
           });
  }
  size_t place_of_group(size_t number) const {
    return place_[groups_[number - 1].nodes.front()->id()];
  }

  Status fuse(const Group& group) {
    NodeSet inside;
    for (const Node* node : group.nodes) inside.insert(*node);
    std::unordered_map<const Node*, uint32_t> uses;  // within the group
    std::vector<FusedOperand> inputs;
    NodeList controls;
    for (const Node* node : group.nodes) {
      controls.add(node->control_inputs());
      for (const FusedOperand& operand : fused_operands(*node)) {
        ++uses[operand.value.node];
        if (!inside.contains(*operand.value.node) &&
            std::ranges::find(inputs, operand) == inputs.end())
          inputs.push_back(operand);
      }
    }
    FusedProgram program(inputs.size());
    std::unordered_map<const Node*, size_t> results;  // by number
    for (const Node* node : group.nodes) {
      std::vector<size_t> numbers;
      for (const FusedOperand& operand : fused_operands(*node)) {
        const auto result = results.find(operand.value.node);
        numbers.push_back(
            result != results.end()
                ? result->second
                : size_t(std::ranges::find(inputs, operand) - inputs.begin()));
      }
      results.emplace(node, program.add(*node, std::move(numbers)).back());
    }
    std::vector<Node*> outputs;
    Ints values, joined;  // by number of the output's value
    const auto add_output = [&](Node* output, std::span<Node* const> parts) {
      for (const Node* part : parts) {
        values.push_back(int64_t(results.at(part)));
        joined.push_back(int64_t(outputs.size()));
      }
      outputs.push_back(output);
    };
    for (Node* node : group.nodes) {
      if (uses[node] == uses_[node->id()]) continue;
      Node* const join = find_join(*node, inside);
      if (join == nullptr) {
        add_output(node, {&node, 1});
      } else if (std::ranges::find(outputs, join) == outputs.end()) {
        add_output(join, values_of(*join));
        add_dependence(controls, join->inputs().back());
      }
    }
    if (joined.size() == outputs.size()) joined.clear();
    const Node& last = *group.nodes.back();
    AttrMap attrs = {
        {"N", int64_t(inputs.size())},  {"M", int64_t(outputs.size())},
        {"T", last.output_dtypes()[0]}, {"program", program.lines()},
        {"names", program.names()},     {"outputs", std::move(values)},
        {"joined", std::move(joined)},  {"columns", columns_of(inputs)}};
    std::vector<Endpoint> endpoints;
    for (const FusedOperand& input : inputs) endpoints.push_back(input.value);
    TAGFLOW_ASSIGN(Node * made, add_for(graph_, last, name_after(graph_, last),
                                        "_FusedElementwise", endpoints,
                                        std::move(attrs), controls));
    for (Node* node : group.nodes) detour_.lead_control(node, {made});
    for (size_t i = 0; i < outputs.size(); ++i) {
      detour_.lead({outputs[i], 0}, {made, int(i)});
      graph_.set_output_shape(made, int(i), outputs[i]->output_shape(0));
    }
    return {};
  }

  // The attribute; empty if all columns are read.
  static Ints columns_of(std::span<const FusedOperand> inputs) {
    Ints columns;
    for (const FusedOperand& input : inputs)
      columns.insert(columns.end(), {input.first, input.count});
    if (std::ranges::all_of(
            inputs, [](const FusedOperand& input) { return input.count == 0; }))
      columns.clear();
    return columns;
  }

  // The ConcatV2 that is the only reader of the node and of other nodes of the
  // group, reads each once, and joins columns; null if there is none.
  Node* find_join(const Node& node, const NodeSet& inside) const {
    const auto reader = readers_.only_reader(node);
    if (!reader || !joins_columns(*reader->node, node)) return nullptr;
    NodeList controls;
    add_dependence(controls, reader->node->inputs().back());
    for (const Node* control : controls)
      if (place_[control->id()] >= place_of_group(group_of_[node.id()]))
        return nullptr;
    for (const Node* value : values_of(*reader->node)) {
      const auto other = readers_.only_reader(*value);
      if (!inside.contains(*value) || !other || other->node != reader->node)
        return nullptr;
    }
    return reader->node;
  }

  static std::vector<Node*> values_of(const Node& join) {
    std::vector<Node*> values;
    for (const Endpoint& input : join.inputs()) values.push_back(input.node);
    values.pop_back();  // the axis
    return values;
  }

  // Whether it joins columns of tensors with the node's shape.
  bool joins_columns(const Node& join, const Node& node) const {
    if (join.op() != "ConcatV2" || !is_pure(join) ||
        !join.control_inputs().empty() || awaited_.contains(join) ||
        facts_.liveness->of(join) != facts_.liveness->of(node) ||
        (after_.contains(join) && !after_.contains(node)) ||
        !has_same_constraints(join, node))
      return false;
    const Endpoint& axis = join.inputs().back();
    const PartialShape& shape = node.output_shape(0);
    NodeList controls;
    return is_last_axis(axis, shape.rank()) && add_dependence(controls, axis) &&
           shape.dim(shape.rank() - 1) >= 0;
  }

  Program& program_;
  Graph& graph_;
  const FrameMap& frames_;
  const PassContext& context_;
  const GraphFacts facts_;
  const Readers readers_;
  Detour detour_;
  std::vector<Node*> nodes_;      // by id
  Things next_, iterates_;        // by thing: see link_things()
  std::vector<size_t> place_;     // by node id, in topological order
  std::vector<size_t> group_of_;  // by node id, from 1; 0: none
  std::vector<uint32_t> uses_;    // by node id, as an input or a fetch
  NodeSet awaited_;               // needed by other edges
  NodeSet after_, before_;        // see find_hidden_ways()
  NodeSet unknown_;               // may be dead for unknown reasons
  std::vector<Group> groups_;
  // By tensor whose columns are read: the last group that reads them.
  std::unordered_map<Endpoint, size_t, EndpointHash> columns_;
};

}  // namespace

Result<bool> group_elementwise(Program& program, const PassContext& context) {
  if (std::ranges::none_of(program.graph.nodes(), [](const Node* node) {
        return is_candidate(*node);
      }))
    return false;
  TAGFLOW_ASSIGN(const FrameMap frames, FrameMap::build(program.graph));
  return Grouping(program, frames, context).run();
}

}  // namespace tagflow::graph
