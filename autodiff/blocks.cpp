#include "autodiff/blocks.h"

#include <algorithm>
#include <map>

#include "autodiff/recompute.h"
#include "graph/analysis/node_queries.h"
#include "graph/analysis/topology.h"
#include "graph/functions/lower.h"

namespace tagflow::autodiff {

bool Stateful::runs_once(const Node& node, const NodeFlags& within) {
  const auto is_reference = [](DataType type) { return is_ref(type); };
  if (std::ranges::any_of(node.input_dtypes(), is_reference) ||
      std::ranges::any_of(node.output_dtypes(), is_reference) ||
      graph::reads_reference(node) || node.op().starts_with("Placeholder"))
    return true;
  if (node.op() == "TensorArrayV3") return false;
  if (node.op().starts_with("TensorArray"))
    return !within.has(*analysis_.maker_of(node.inputs()[0]));
  if (!node.op_def().is_registered || graph::is_functional_op(node.op()))
    return traits_.of(node.op(), node.attrs()).has_effects;
  return node.op_def().is_stateful;
}

class Blocks::Finder {
 public:
  Finder(Analysis& analysis, const Paths& paths, std::span<const Endpoint> xs,
         std::span<const Endpoint> ys)
      : analysis_(analysis),
        paths_(paths),
        xs_(xs),
        ys_(ys.begin(), ys.end()),
        stateful_(analysis) {}

  Result<Blocks> run() {
    std::map<std::string, std::vector<Node*>, std::less<>> marked;
    for (Node* node : graph().nodes())
      if (const auto names = blocks_of(node->attrs()); !names.empty())
        marked[std::string(outermost_block(names))].push_back(node);
    Blocks blocks;
    if (marked.empty()) return blocks;
    TAGFLOW_ASSIGN(order_, graph::topological_order(graph()));
    place_.resize(graph().end_id());
    for (size_t i = 0; i < order_.size(); ++i) place_[order_[i]->id()] = i;
    by_frame_.resize(num_frames());
    for (Node* node : order_)
      by_frame_[size_t(analysis_.inner_frame(*node))].push_back(node);
    blocks.block_of_.resize(graph().end_id());
    for (auto& [name, nodes] : marked) {
      Block block{name};
      block.members = NodeFlags(graph().end_id());
      block.nodes = std::move(nodes);
      for (Node* node : block.nodes) block.members.set(*node);
      if (!complete(block, blocks)) continue;
      leave_out(block);
      find_borders(block);
      if (!is_apart(block)) continue;
      for (const Node* node : block.nodes)
        blocks.block_of_[node->id()] = uint32_t(blocks.blocks_.size()) + 1;
      blocks.blocks_.push_back(std::move(block));
    }
    return blocks;
  }

 private:
  Graph& graph() { return analysis_.graph(); }

  size_t num_frames() {
    size_t most = 0;
    for (const Node* node : order_)
      most = std::max(most, size_t(analysis_.inner_frame(*node)));
    return most + 1;
  }

  // The outer one.
  FrameId outermost(const Node& node) const {
    return node.is_enter() ? analysis_.frame_of(node)
                           : analysis_.output_frame(node);
  }

  // Adds the loops that members are in, and the nodes between members. Returns
  // false if these belong to another block.
  bool complete(Block& block, const Blocks& blocks) {
    block.frame = outermost(*block.nodes.front());
    for (const Node* node : block.nodes)
      while (!analysis_.is_within(outermost(*node), block.frame))
        block.frame = analysis_.parent(block.frame);
    size_t done = 0;
    std::vector<bool> has_loop(by_frame_.size());
    do {
      for (; done < block.nodes.size(); ++done) {
        const Node& node = *block.nodes[done];
        if (blocks.of(node) != nullptr ||
            !analysis_.is_within(outermost(node), block.frame))
          return false;
        if (analysis_.inner_frame(node) == block.frame) continue;
        const FrameId loop =
            analysis_.child_towards(block.frame, analysis_.inner_frame(node));
        if (has_loop[size_t(loop)]) continue;
        has_loop[size_t(loop)] = true;
        for (size_t frame = size_t(loop); frame < by_frame_.size(); ++frame)
          if (analysis_.is_within(FrameId(frame), loop))
            for (Node* inside : by_frame_[frame]) add(block, inside);
      }
      add_between(block);
    } while (done < block.nodes.size());
    return true;
  }

  static void add(Block& block, Node* node) {
    if (block.members.has(*node)) return;
    block.members.set(*node);
    block.nodes.push_back(node);
  }

  // Calls visit(node) for all nodes that the node waits for in its iteration.
  template <class Visit>
  static void visit_inputs(const Node& node, const Visit& visit) {
    for (size_t i = 0; i < node.inputs().size(); ++i)
      if (node.inputs()[i].node != nullptr && !graph::is_back_edge(node, i))
        visit(*node.inputs()[i].node);
    for (const Node* control : node.control_inputs()) visit(*control);
  }

  void add_between(Block& block) {
    size_t first = order_.size(), last = 0;
    for (const Node* node : block.nodes) {
      first = std::min(first, place_[node->id()]);
      last = std::max(last, place_[node->id()]);
    }
    NodeFlags behind(graph().end_id()), before(graph().end_id());
    for (size_t i = first; i <= last; ++i) {
      const Node& node = *order_[i];
      bool is_behind = block.members.has(node);
      visit_inputs(node, [&](const Node& from) {
        is_behind = is_behind || behind.has(from);
      });
      if (is_behind) behind.set(node);
    }
    for (size_t i = last + 1; i-- > first;) {
      Node* node = order_[i];
      if (!block.members.has(*node) && !before.has(*node)) continue;
      if (behind.has(*node)) add(block, node);
      visit_inputs(*node, [&](const Node& from) { before.set(from); });
    }
  }

  // Nodes that run once in the block's own frame are not members: their outputs
  // are inputs of the block. Only those that lead a gradient to another member
  // are members.
  void leave_out(Block& block) {
    std::ranges::sort(block.nodes, {},
                      [&](const Node* node) { return place_[node->id()]; });
    std::erase_if(block.nodes, [&](const Node* node) {
      const bool stays =
          analysis_.frame_of(*node) != block.frame || node->is_enter() ||
          !stateful_.runs_once(*node, block.members) ||
          std::ranges::any_of(node->inputs(), [&](const Endpoint& input) {
            return paths_.has(input) && block.members.has(*input.node);
          });
      if (!stays) block.members.set(*node, false);
      return !stays;
    });
  }

  void find_borders(Block& block) {
    std::unordered_set<Endpoint, graph::EndpointHash> inputs;
    for (Node* node : block.nodes) {
      for (const Endpoint& input : node->inputs())
        if (input.node != nullptr && !block.members.has(*input.node) &&
            inputs.insert(input).second) {
          comes_in_.push_back(input);
          if (paths_.has(input)) block.inputs.push_back(input);
        }
      if (analysis_.output_frame(*node) != block.frame) continue;
      for (int port = 0; port < node->num_outputs(); ++port) {
        const Endpoint output{node, port};
        if (!paths_.has(output)) continue;
        bool is_read = std::ranges::find(ys_, output) != ys_.end();
        for (const Use& use : analysis_.uses(*node))
          is_read = is_read || (use.node->inputs()[use.index] == output &&
                                !block.members.has(*use.node));
        if (is_read) block.outputs.push_back(output);
      }
    }
  }

  // Note [Blocks], 2, and no x is inside.
  bool is_apart(Block& block) {
    const std::vector<Endpoint> comes_in = std::move(comes_in_);
    comes_in_.clear();
    for (const Endpoint& x : xs_)
      if (block.members.has(*x.node))
        for (const Use& use : analysis_.uses(*x.node))
          if (use.node->inputs()[use.index] == x &&
              block.members.has(*use.node))
            return false;
    Conditions& conditions = analysis_.conditions();
    const Conditions::Set given =
        block.frame == FrameId::kRoot ||
                analysis_.loop(block.frame).loop_cond == nullptr
            ? Conditions::kNone
            : analysis_.goes_on(analysis_.loop(block.frame));
    const auto live = [&](const Endpoint& tensor) {
      return conditions.both(given, analysis_.live(tensor));
    };
    if (block.outputs.empty()) return false;
    block.live = analysis_.live(block.outputs.front());
    const Conditions::Set all = live(block.outputs.front());
    return std::ranges::all_of(
               block.outputs,
               [&](const Endpoint& output) { return live(output) == all; }) &&
           std::ranges::all_of(comes_in, [&](const Endpoint& input) {
             return conditions.includes(all, live(input));
           });
  }

  Analysis& analysis_;
  const Paths& paths_;
  const std::span<const Endpoint> xs_;
  const std::vector<Endpoint> ys_;
  Stateful stateful_;
  std::vector<Node*> order_;
  std::vector<size_t> place_;  // in order_, by node id
  std::vector<std::vector<Node*>> by_frame_;
  std::vector<Endpoint> comes_in_;  // of the current block
};

Result<Blocks> Blocks::find(Analysis& analysis, const Paths& paths,
                            std::span<const Endpoint> xs,
                            std::span<const Endpoint> ys) {
  return Finder(analysis, paths, xs, ys).run();
}

}  // namespace tagflow::autodiff
