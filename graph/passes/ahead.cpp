// Moves reads of variables that a loop does not change to before the loop.
//
// Note [What is read ahead]
// A loop reads its variables in each iteration, since other runs may change
// them meanwhile. It is also correct to see no changes: then all reads of the
// loop happen at one time, which must be after everything that the reads come
// after:
//
//   v -> Enter -> Read  is  v -> _ReadVariablesAhead -> Enter -> Identity
//        pivot ---^                    pivot -> _CheckReadAhead ---^
//
// _ReadVariablesAhead reads all variables of the loop, at once, when all inputs
// of the loop have arrived. Its results are loop constants, which other passes
// can use. _CheckReadAhead replaces each read: it is live if the read was, has
// the same control edges, and fails if the variable had no value. For such a
// variable _ReadVariablesAhead returns zeros, which no node in the loop sees,
// even if the variable has a value by then.
//
// This is done for a loop
//   - in which, and inside which, these reads are the only nodes that read,
//     write or wait for state that other runs see;
//   - whose LoopCond does not depend on their values, since it may wait for
//     another run;
//   - which can be cut (Note [Loops that can be cut]), and whose inputs are all
//     live if the reads are, so that waiting for them adds no condition;
//   - whose inputs do not wait for nodes after the reads, by an edge, or, as
//     far as it is known, by a queue or similar.
#include <algorithm>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/analysis/polls.h"
#include "graph/analysis/topology.h"
#include "graph/analysis/whole_loops.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

// State that other runs may see or change: its order matters.
bool is_seen(const Node& node) {
  return reads_variables(node) || may_see_others(node);
}

class ReadingAhead {
 public:
  ReadingAhead(Program& program, const FrameMap& frames,
               const PassContext& context)
      : graph_(program.graph),
        frames_(frames),
        context_(context),
        facts_(find_facts(program.graph, frames)),
        detour_(program),
        reads_(frames.frames().size()),
        is_closed_(frames.frames().size(), true) {}

  Result<bool> run() {
    const std::vector<bool> polls = find_polls(graph_, frames_);
    for (Node* node : graph_.nodes())
      if (is_seen(*node)) sort(node, polls[node->id()]);
    if (std::ranges::all_of(reads_, &std::vector<Node*>::empty)) return false;
    find_order();
    for (const StaticFrame& frame : frames_.frames())
      if (is_closed_[size_t(frame.id)] && can_wait_for_all(frame))
        TAGFLOW_RETURN_IF_ERROR(read_ahead(frame));
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  void sort(Node* node, bool is_poll) {
    const FrameId frame = frames_.of(*node);
    FrameId open = frame;  // visible to other runs, with all outer frames
    if (node->op() == "ReadVariableOp" && frame != FrameId::kRoot && !is_poll &&
        is_loop_constant(*node->inputs()[0].node) &&
        node->output_shape(0).fully_known()) {
      reads_[size_t(frame)].push_back(node);
      open = frames_.frame(frame).parent;
    }
    for (; is_closed_[size_t(open)]; open = frames_.frame(open).parent)
      is_closed_[size_t(open)] = false;
  }

  // Finds nodes that are, or come after, effects that other runs see, or that
  // may wait for other runs.
  void find_order() {
    std::vector<const Node*> seen, waiting;
    for (const Node* node : graph_.nodes()) {
      if (is_seen(*node)) seen.push_back(node);
      if (context_.may_wait(*node)) waiting.push_back(node);
    }
    next_ = find_successors(graph_);
    is_ordered_ = all_after(next_, std::move(seen));
    comes_after_wait_ = all_after(next_, std::move(waiting));
  }

  static Endpoint handle_of(const Node& read) {
    return read.inputs()[0].node->inputs()[0];
  }

  // Whether the reads of the loop can be one node, and that node can wait for
  // all inputs of the loop.
  bool can_wait_for_all(const StaticFrame& frame) {
    const std::vector<Node*>& reads = reads_[size_t(frame.id)];
    if (reads.empty() || !facts_.whole_loops[size_t(frame.id)].empty() ||
        may_be_waited_for(frame))
      return false;
    Liveness& liveness = *facts_.liveness;
    return std::ranges::all_of(reads, [&](const Node* read) {
      return has_same_constraints(*read, *reads[0]) &&
             std::ranges::all_of(frame.enters, [&](const Node* enter) {
               return liveness.conditions().includes(liveness.of(*read),
                                                     liveness.of(*enter));
             });
    });
  }

  // Whether an input of the loop may wait for nodes after the reads.
  bool may_be_waited_for(const StaticFrame& frame) const {
    const auto& reads = reads_[size_t(frame.id)];
    // The next iteration of an outer loop has another instance of this one.
    const std::vector<bool> later =
        all_after(next_, {reads.begin(), reads.end()}, [&](const Node& node) {
          return node.is_next_iteration() &&
                 !frames_.is_within(frames_.of(node), frame.id);
        });
    const auto is_any_enter = [&](const std::vector<bool>& these) {
      return std::ranges::any_of(
          frame.enters, [&](const Node* enter) { return these[enter->id()]; });
    };
    return is_any_enter(later) ||
           (is_any_enter(comes_after_wait_) &&
            std::ranges::any_of(graph_.nodes(), [&](const Node* node) {
              return later[node->id()] &&
                     (context_.may_wait(*node) || may_end_wait(*node));
            }));
  }

  // Adds a node that has a token once the input of an Enter has arrived.
  Status wait_for(const Node& enter, NodeList& waits) {
    const Endpoint& input = enter.inputs()[0];
    if (add_dependence(waits, input)) return {};
    TAGFLOW_ASSIGN(
        Node * made,
        add_for(graph_, enter, name_after(graph_, enter, "/come"), "Identity",
                {&input, 1}, {{"T", enter.input_dtypes()[0]}}, {}));
    waits.add(made);
    return {};
  }

  Status read_ahead(const StaticFrame& frame) {
    const std::vector<Node*>& reads = reads_[size_t(frame.id)];
    std::vector<Endpoint> handles;
    std::vector<DataType> types;
    std::vector<PartialShape> shapes;
    std::vector<size_t> numbers;  // by read: of its variable
    for (const Node* read : reads) {
      const Endpoint handle = handle_of(*read);
      const DataType type = read->output_dtypes()[0];
      size_t number = 0;
      while (number < handles.size() &&
             (handles[number] != handle || types[number] != type))
        ++number;
      numbers.push_back(number);
      if (number < handles.size()) continue;
      handles.push_back(handle);
      types.push_back(type);
      shapes.push_back(read->output_shape(0));
    }
    NodeList waits;
    for (Node* enter : frame.enters) {
      waits.add(enter->control_inputs());
      if (is_ordered_[enter->inputs()[0].node->id()])
        TAGFLOW_RETURN_IF_ERROR(wait_for(*enter, waits));
    }
    TAGFLOW_ASSIGN(Node * made, add_for(graph_, *reads[0],
                                        name_after(graph_, *reads[0], "/ahead"),
                                        "_ReadVariablesAhead", handles,
                                        {{"N", int64_t(handles.size())},
                                         {"dtypes", std::move(types)},
                                         {"shapes", std::move(shapes)}},
                                        waits));
    std::vector<Endpoint> constants;  // in the loop: its outputs
    for (int i = 0; i < made->num_outputs(); ++i) {
      TAGFLOW_ASSIGN(Node * enter,
                     add_constant_enter(graph_, *reads[0], frame, {made, i}));
      constants.push_back({enter, 0});
    }
    for (size_t i = 0; i < reads.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(replace(reads[i], constants, numbers[i]));
    return {};
  }

  // The constants are the values, then two that describe failures.
  Status replace(Node* read, std::span<const Endpoint> constants,
                 size_t number) {
    TAGFLOW_ASSIGN(
        Node * check,
        detour_.replace(read, "_CheckReadAhead", constants.last(2),
                        {{"index", int64_t(number)}}, read->control_inputs()));
    TAGFLOW_ASSIGN(Node * value,
                   add_waiting(graph_, *read, constants[number].node, check));
    detour_.lead({read, 0}, {value, 0});
    return {};
  }

  Graph& graph_;
  const FrameMap& frames_;
  const PassContext& context_;
  const GraphFacts facts_;
  Detour detour_;
  std::vector<std::vector<Node*>> reads_;  // by frame: of loop constants
  std::vector<bool> is_closed_;            // by frame: invisible to other runs
  Successors next_;
  // By node id: the results of find_order().
  std::vector<bool> is_ordered_, comes_after_wait_;
};

}  // namespace

Result<bool> read_ahead(Program& program, const PassContext& context) {
  const auto nodes = program.graph.nodes();
  if (std::ranges::none_of(nodes, &Node::is_enter) ||
      std::ranges::any_of(
          nodes, [](const Node* node) { return hides_deadness(*node); }))
    return false;
  TAGFLOW_ASSIGN(const FrameMap frames, FrameMap::build(program.graph));
  TAGFLOW_ASSIGN(const bool changed,
                 ReadingAhead(program, frames, context).run());
  // Nodes that put it on a list should read the constant itself.
  if (changed)
    TAGFLOW_RETURN_IF_ERROR(remove_identities(program, context).status());
  return changed;
}

}  // namespace tagflow::graph
