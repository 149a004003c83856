// Replaces reads of constants that a loop saves.
//
// Note [What is saved alike]
// If a loop puts a loop constant on a list in each of its iterations, and
// another loop beside it reads that list, as the gradient of a loop does, every
// element is that constant:
//
//   c -> Enter -> Push -> ... list ... -> Pop -> Mul
//
//   becomes, for the same list,     c -> Enter -> Identity -> Mul
//                                         Pop ------^
//
// So the reader's value is not used, but its token is waited for: it may find
// no element.
#include <algorithm>
#include <map>
#include <tuple>

#include "graph/analysis/frames.h"
#include "graph/analysis/list_elements.h"
#include "graph/passes/passes.h"
#include "graph/passes/readers.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

// Readers of lists whose elements are one loop constant.
class SavedConstants {
 public:
  SavedConstants(Program& program, const FrameMap& frames)
      : graph_(program.graph),
        frames_(frames),
        readers_(program),
        detour_(program) {}

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
    if (!reading || !readers_.is_read({reader, reading->output})) return {};
    const auto elements = tensors_read(*reader, *reading);
    if (!elements) return {};
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
    // In another iteration of an outer loop the constant may differ.
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
  const Readers readers_;
  Detour detour_;
  std::map<std::tuple<FrameId, NodeId, int>, Node*> enters_;  // by value
};

}  // namespace

Result<bool> read_saved_constants(Program& program,
                                  const PassContext& context) {
  if (std::ranges::none_of(program.graph.nodes(), &Node::is_enter))
    return false;
  TAGFLOW_ASSIGN(const FrameMap frames, FrameMap::build(program.graph));
  TAGFLOW_ASSIGN(const bool changed, SavedConstants(program, frames).run());
  if (changed)
    TAGFLOW_RETURN_IF_ERROR(remove_identities(program, context).status());
  return changed;
}

}  // namespace tagflow::graph
