// Variables that a loop reads, and leaves alone.
//
// Note [What is read ahead]
// A loop reads its variables in each iteration, as other runs may change them
// meanwhile. To see no change is right as well, where all reads of the loop are
// taken to be of one moment, and that moment is after all that the reads come
// after:
//
//   v -> Enter -> Read  is  v -> _ReadVariablesAhead -> Enter -> Identity
//        pivot ---^         v -> Enter -> Read -----------------------^
//
// _ReadVariablesAhead reads all variables of the loop, at once, when all that
// enters the loop has come. What they gave is a loop constant, of which other
// passes make more. Each read stays, and is waited for: it says whether its
// value is live, comes before all that it came before, and fails where the
// variable has no value, of which _ReadVariablesAhead makes zeros.
//
// This is done for a loop in which nothing is read, written or waited for that
// other runs see, nor anything inside it, beside these reads; which does not go
// on by what they give, for it may wait for another run; which can be cut (Note
// [Loops that can be cut]); and of which all that enters is live where the
// reads are, so that to wait for it says nothing more.
//
// Where the loop puts such a constant, or any other, on a list in each of its
// iterations, and another loop beside it reads that list, as the gradient of a
// loop does, every element is that constant. So the reader is not asked for
// its value, but only waited for: it may find no element.
#include <algorithm>
#include <map>
#include <tuple>

#include "graph/frames.h"
#include "graph/list_elements.h"
#include "graph/passes/passes.h"
#include "graph/passes/readers.h"
#include "graph/passes/rewriting.h"
#include "graph/placement/whole_loops.h"
#include "graph/polls.h"

namespace tagflow::graph {
namespace {

// What other runs may see, or change: its order matters.
bool is_seen(const Node& node) {
  return reads_variable(node) || may_see_others(node);
}

Result<Node*> add_constant_enter(Graph& graph, const Node& like,
                                 const StaticFrame& frame,
                                 const Endpoint& value) {
  TAGFLOW_ASSIGN(Node * enter,
                 add_for(graph, like, name_after(graph, like, "/Enter"),
                         "Enter", {&value, 1},
                         {{"frame_name", frame.name},
                          {"is_constant", true},
                          {"parallel_iterations", frame.parallel_iterations}},
                         {}));
  graph.set_output_shape(enter, 0, value.node->output_shape(value.port));
  return enter;
}

// An Identity of the constant, which is live when `waits` is.
Result<Node*> add_waiting(Graph& graph, const Node& like, Node* constant,
                          Node* waits) {
  const Endpoint source{constant, 0};
  Node* const controls[] = {waits};
  TAGFLOW_ASSIGN(
      Node * made,
      add_for(graph, like, name_after(graph, like), "Identity", {&source, 1},
              {{"T", constant->output_dtypes()[0]}}, controls));
  graph.set_output_shape(made, 0, constant->output_shape(0));
  return made;
}

class ReadingAhead {
 public:
  ReadingAhead(Program& program, const FrameMap& frames)
      : graph_(program.graph),
        frames_(frames),
        facts_(find_facts(program.graph, frames)),
        readers_(program),
        detour_(program),
        reads_(frames.frames().size()),
        is_closed_(frames.frames().size(), true) {}

  Result<bool> run() {
    if (std::ranges::any_of(graph_.nodes(), &comes_from_elsewhere))
      return false;
    const std::vector<bool> polls = find_polls(graph_, frames_);
    for (Node* node : graph_.nodes())
      if (is_seen(*node) && !is_ahead(*node)) sort(node, polls[node->id()]);
    find_ordered();
    for (const StaticFrame& frame : frames_.frames())
      if (is_closed_[size_t(frame.id)] && can_wait_for_all(frame))
        TAGFLOW_RETURN_IF_ERROR(read_ahead(frame));
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  // A read that stayed: nobody sees its value.
  bool is_ahead(const Node& node) const {
    return node.op() == "ReadVariableOp" &&
           !readers_.is_read({const_cast<Node*>(&node), 0});
  }

  void sort(Node* node, bool is_poll) {
    const FrameId frame = frames_.of(*node);
    FrameId open = frame;  // what other runs may see into, with all around
    if (node->op() == "ReadVariableOp" && frame != FrameId::kRoot && !is_poll &&
        is_loop_constant(*node->inputs()[0].node) &&
        node->output_shape(0).fully_known()) {
      reads_[size_t(frame)].push_back(node);
      open = frames_.frame(frame).parent;
    }
    for (; is_closed_[size_t(open)]; open = frames_.frame(open).parent)
      is_closed_[size_t(open)] = false;
  }

  // Marks what is, or comes after, something that other runs may see.
  void find_ordered() {
    std::vector<std::vector<const Node*>> readers(graph_.end_id());
    std::vector<const Node*> open;
    is_ordered_.resize(graph_.end_id());
    const auto mark = [&](const Node* node) {
      if (is_ordered_[node->id()]) return;
      is_ordered_[node->id()] = true;
      open.push_back(node);
    };
    for (const Node* node : graph_.nodes()) {
      for (const Endpoint& input : node->inputs())
        readers[input.node->id()].push_back(node);
      for (const Node* control : node->control_inputs())
        readers[control->id()].push_back(node);
      if (is_seen(*node)) mark(node);
    }
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      for (const Node* reader : readers[node->id()]) mark(reader);
    }
  }

  static Endpoint handle_of(const Node& read) {
    return read.inputs()[0].node->inputs()[0];
  }

  // Whether the reads of the loop can be one node, and that can wait for what
  // enters.
  bool can_wait_for_all(const StaticFrame& frame) {
    const std::vector<Node*>& reads = reads_[size_t(frame.id)];
    if (reads.empty()) return false;
    if (!facts_.whole_loops[size_t(frame.id)].empty()) return false;
    Liveness& liveness = *facts_.liveness;
    return std::ranges::all_of(reads, [&](const Node* read) {
      return has_same_constraints(*read, *reads[0]) &&
             std::ranges::all_of(frame.enters, [&](const Node* enter) {
               return liveness.conditions().includes(liveness.of(*read),
                                                     liveness.of(*enter));
             });
    });
  }

  // What says that the input of an Enter has come.
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
    for (const Node* read : reads) {
      handles.push_back(handle_of(*read));
      types.push_back(read->output_dtypes()[0]);
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
    for (size_t i = 0; i < reads.size(); ++i) {
      TAGFLOW_ASSIGN(Node * enter, add_constant_enter(graph_, *reads[i], frame,
                                                      {made, int(i)}));
      graph_.add_control_input(reads[i], enter);
      TAGFLOW_ASSIGN(Node * value,
                     add_waiting(graph_, *reads[i], enter, reads[i]));
      detour_.lead({reads[i], 0}, {value, 0});
    }
    return {};
  }

  Graph& graph_;
  const FrameMap& frames_;
  const GraphFacts facts_;
  const Readers readers_;
  Detour detour_;
  std::vector<std::vector<Node*>> reads_;  // by frame: of loop constants
  std::vector<bool> is_closed_;            // by frame: nobody else sees into it
  std::vector<bool> is_ordered_;           // by node id, as find_ordered() says
};

// Readers of lists that hold one loop constant.
class SavedConstants {
 public:
  SavedConstants(Program& program, const FrameMap& frames)
      : graph_(program.graph), frames_(frames), detour_(program) {}

  Result<bool> run() {
    const std::vector<Node*> nodes(graph_.nodes().begin(),
                                   graph_.nodes().end());
    for (Node* node : nodes) TAGFLOW_RETURN_IF_ERROR(look_at(node));
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  Status look_at(Node* reader) {
    const auto reading = list_reading(*reader);
    if (!reading || reading->is_stacked) return {};
    const auto elements =
        find_list_elements(reader->inputs()[size_t(reading->list)]);
    if (!elements || elements->tensors.empty() || !elements->stacked.empty() ||
        may_be_unset(*elements))
      return {};
    const Endpoint& first = elements->tensors[0];
    if (!is_loop_constant(*first.node)) return {};
    const Endpoint value = first.node->inputs()[0];
    const FrameId around = frames_.of(*first.node);
    const StaticFrame& frame = frames_.frame(frames_.of(*reader));
    const DataType type = reader->output_dtypes()[size_t(reading->output)];
    if (frame.parent != around || frame.id == FrameId::kRoot ||
        type != first.node->output_dtypes()[0])
      return {};
    for (const Endpoint& tensor : elements->tensors)
      if (!is_loop_constant(*tensor.node) || tensor.node->inputs()[0] != value)
        return {};
    // In another iteration around, it was another constant.
    for (const Node* next : elements->next_iterations)
      if (frames_.of(*next) == around ||
          !frames_.is_within(frames_.of(*next), around))
        return {};
    Node*& enter = enters_[{frame.id, value.node->id(), value.port}];
    if (enter == nullptr) {
      TAGFLOW_ASSIGN(enter, add_constant_enter(graph_, *reader, frame, value));
    }
    TAGFLOW_ASSIGN(Node * made, add_waiting(graph_, *reader, enter, reader));
    detour_.lead({reader, reading->output}, {made, 0});
    return {};
  }

  Graph& graph_;
  const FrameMap& frames_;
  Detour detour_;
  std::map<std::tuple<FrameId, NodeId, int>, Node*> enters_;  // by value
};

}  // namespace

Result<bool> read_ahead(Program& program, const Evaluator* evaluator) {
  if (std::ranges::none_of(program.graph.nodes(), &Node::is_enter))
    return false;
  TAGFLOW_ASSIGN(const FrameMap frames, FrameMap::build(program.graph));
  TAGFLOW_ASSIGN(const bool changed, ReadingAhead(program, frames).run());
  // Who puts it on a list shall read the constant itself.
  if (changed)
    TAGFLOW_RETURN_IF_ERROR(remove_identities(program, evaluator).status());
  TAGFLOW_ASSIGN(const FrameMap now, FrameMap::build(program.graph));
  TAGFLOW_ASSIGN(const bool saved, SavedConstants(program, now).run());
  if (saved)
    TAGFLOW_RETURN_IF_ERROR(remove_identities(program, evaluator).status());
  return changed || saved;
}

}  // namespace tagflow::graph
