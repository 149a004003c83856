#include "graph/analysis/liveness.h"

#include "graph/analysis/node_queries.h"
#include "graph/analysis/topology.h"

namespace tagflow::graph {
namespace {

// More nested loops and conditionals than real programs have. Beyond it nothing
// is known, so that long chains of Switches do not take quadratic time.
constexpr size_t kMostConditions = 128;

// The value behind a reference may change between two readers.
bool hands_on(const Node& node) {
  return (node.is_identity() || node.is_loop_cond() ||
          node.is_constant_enter()) &&
         !reads_reference(node);
}

}  // namespace

Liveness::Liveness(const Graph& graph, const FrameMap& frames,
                   const std::vector<bool>& may_be_dead)
    : frames_(frames),
      may_be_dead_(may_be_dead),
      of_(graph.end_id()),
      origins_(graph.end_id()),
      ends_(frames.frames().size()) {}

void Liveness::visit(Node& node) {
  if (hands_on(node)) origins_[node.id()] = origin(node.inputs()[0]);
  Conditions::Set set = Conditions::kNone;
  if (node.is_merge())
    set = of_merge(node);
  else if (!node.is_control_trigger())
    set = of_inputs(node);
  if (node.is_exit()) set = of_exit(node, set);
  of_[node.id()] = set;
}

Conditions::Set Liveness::of_inputs(Node& node) {
  Conditions::Set set = Conditions::kNone;
  const auto is_too_long = [&](Conditions::Set more) {
    set = conditions_.both(set, more);
    return conditions_.of(set).size() > kMostConditions;
  };
  for (const Endpoint& input : node.inputs())
    if (is_too_long(of(input))) return itself({&node, 0});
  for (const Node* control : node.control_inputs())
    if (is_too_long(of(*control))) return itself({&node, 0});
  return set;
}

Conditions::Set Liveness::of_merge(Node& node) {
  // A loop variable's back edge is live whenever it has a token.
  std::vector<Conditions::Set> inputs;
  for (size_t i = 0; i < node.inputs().size(); ++i)
    if (node.inputs()[i].node != nullptr && !is_back_edge(node, i))
      inputs.push_back(of(node.inputs()[i]));
  if (inputs.empty()) return Conditions::kNone;
  const Conditions::Set common = conditions_.common(inputs);
  if (conditions_.is_any_certain(inputs)) return common;
  return conditions_.both(common, itself({&node, 0}));
}

Conditions::Set Liveness::of_exit(Node& node, Conditions::Set read) {
  const FrameId frame = frames_.of(node);
  if (frames_.frame(frame).next_iterations.empty()) return read;
  const std::optional<End>& end = ends_[size_t(frame)];
  if (end && read == end->where_false) return end->outside;
  return itself({&node, 0});
}

void Liveness::end(Node& loop_cond) {
  const FrameId frame = frames_.of(loop_cond);
  const int depth = frames_.frame(frame).depth;
  const Conditions::Set live = of(loop_cond);
  // A node inside may make it dead, and then no Exit is live.
  for (const Conditions::Id id : conditions_.of(live))
    if (conditions_.condition(id).depth >= depth) return;
  ends_[size_t(frame)] = End{where({&loop_cond, 0}, 0, 2), live};
}

Conditions::Set Liveness::of(const Endpoint& output) {
  const Node& node = *output.node;
  if (node.is_switch()) {
    const Endpoint& predicate = node.inputs()[1];
    const DataType type =
        predicate.node->output_dtypes()[size_t(predicate.port)];
    return conditions_.both(
        of(node), is_ref(type)
                      ? itself(output)
                      : where(predicate, output.port, node.num_outputs()));
  }
  if (!is_call(node)) return of(node);
  const Result<int64_t> body = node.attr<int64_t>("body");
  const bool is_known = body.ok() && size_t(*body) < may_be_dead_.size() &&
                        !may_be_dead_[size_t(*body)];
  return is_known ? of(node) : conditions_.both(of(node), itself(output));
}

Conditions::Set Liveness::where(const Endpoint& predicate, int port,
                                int ports) {
  const Conditions::Set live = of(predicate);
  if (ports == 1) return live;
  const Endpoint source = origin(predicate);
  const FrameId frame = frames_.output_of(*source.node);
  return conditions_.both(live, conditions_.only({source, port, ports,
                                                  frames_.frame(frame).depth}));
}

Conditions::Set Liveness::itself(const Endpoint& output) {
  const FrameId frame = frames_.output_of(*output.node);
  return conditions_.only({output, 0, 0, frames_.frame(frame).depth});
}

Endpoint Liveness::origin(const Endpoint& value) const {
  return hands_on(*value.node) ? origins_[value.node->id()] : value;
}

}  // namespace tagflow::graph
