#include "autodiff/arguments.h"

#include "autodiff/gradient_arrays.h"
#include "autodiff/lower_calls.h"
#include "autodiff/mutable_stacks.h"
#include "autodiff/recursive_calls.h"
#include "autodiff/save_plan.h"
#include "graph/analysis/dereference.h"
#include "graph/analysis/loop_shapes.h"
#include "graph/builder/growth.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

using graph::Scope;

namespace {

Status check_tensor(const Scope& scope, const Output& output, const char* what,
                    size_t i) {
  if (!output.has_tensor())
    return invalid_argument("[gradients] {} {} is not a tensor", what, i);
  if (!scope.graph().owns(output.node()))
    return invalid_argument("[gradients] {} {} (\"{}\") is of another graph",
                            what, i, output.name());
  return {};
}

// Whether a loop is still being built, and this is called in its body.
bool has_open_loop(const Graph& graph) {
  for (const Node* node : graph.nodes())
    for (const Endpoint& input : node->inputs())
      if (input.node == nullptr) return true;
  return false;
}

// Checks that all ys are in one frame, and each x is there; or around it, if
// the loop is still being built, since the gradient is a tensor of its body.
Status check_frames(const Analysis& analysis, FrameId frame, bool is_open,
                    const std::vector<Endpoint>& ys,
                    const std::vector<Endpoint>& xs) {
  const auto name = [&](FrameId id) {
    return id == FrameId::kRoot ? std::string("outside of all loops")
                                : fmt::format("in the loop of frame \"{}\"",
                                              analysis.frame(id).name);
  };
  const auto refuse = [&](const char* what, const Endpoint& tensor,
                          FrameId own) {
    return invalid_argument("[gradients] y \"{}\" is {}, but {} \"{}\" is {}",
                            Output(ys[0]).name(), name(frame), what,
                            Output(tensor).name(), name(own));
  };
  for (const Endpoint& y : ys)
    if (const FrameId own = analysis.output_frame(*y.node); own != frame)
      return refuse("y", y, own);
  for (const Endpoint& x : xs)
    if (const FrameId own = analysis.output_frame(*x.node);
        own != frame && (!is_open || !analysis.is_within(frame, own)))
      return refuse("x", x, own);
  return {};
}

// Nodes that lowering has added to a loop under construction belong to the
// branch or loop of the ys.
void tell_builder(const Scope& scope, const Analysis& analysis, FrameId frame,
                  size_t first_id, const Node& y) {
  if (frame == FrameId::kRoot) return;
  graph::BuilderState& state = graph::ScopeAccess::state(scope);
  for (const Node* node : scope.graph().nodes())
    if (node->id() >= first_id && analysis.output_frame(*node) == frame)
      state.set_context(node, state.context_of(&y));
}

// The nodes whose gradients may need the value that they read from a reference.
// A later read may give another version, so the value must be kept. An Identity
// outputs what it has read.
std::vector<Node*> readers_of_references(const Graph& graph,
                                         const Paths& paths) {
  std::vector<Node*> readers;
  for (Node* node : graph.nodes()) {
    bool is_needed = node->is_switch();
    for (int port = 0; port < node->num_outputs(); ++port)
      is_needed = is_needed || paths.has({node, port});
    if (!is_needed || node->is_identity()) continue;
    for (size_t i = 0; i < node->inputs().size(); ++i)
      if (graph::reads_reference(*node, i)) {
        readers.push_back(node);
        break;
      }
  }
  return readers;
}

}  // namespace

Status Arguments::check(const Scope& scope) const {
  if (ys.empty()) return invalid_argument("[gradients] there are no ys");
  for (const auto& [list, what] : {std::pair(&ys, "y"), std::pair(&xs, "x"),
                                   std::pair(&stop_gradients, "stop_gradient")})
    for (size_t i = 0; i < list->size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(check_tensor(scope, (*list)[i], what, i));
  for (size_t i = 0; i < ys.size(); ++i)
    if (!is_floating(remove_ref(ys[i].dtype())) &&
        !is_complex(remove_ref(ys[i].dtype())))
      return invalid_argument(
          "[gradients] y {} (\"{}\") is {}, which has no derivative", i,
          ys[i].name(), dtype_name(ys[i].dtype()));
  for (size_t i = 0; i < xs.size(); ++i)
    if (!has_gradient(xs[i].dtype()))
      return invalid_argument(
          "[gradients] x {} (\"{}\") is {}, by which nothing has a derivative",
          i, xs[i].name(), dtype_name(xs[i].dtype()));
  return {};
}

Result<PreparedGraph> prepare(const Scope& scope, const Arguments& arguments) {
  TAGFLOW_RETURN_IF_ERROR(arguments.check(scope));
  return prepare(scope,
                 Tensors{endpoints_of(arguments.ys), endpoints_of(arguments.xs),
                         endpoints_of(arguments.stop_gradients)});
}

Result<PreparedGraph> prepare(const Scope& scope, const Tensors& tensors,
                              const std::map<std::string, std::string>& save) {
  Graph& graph = scope.graph();
  const graph::Limits& limits = graph::growth_limits(scope);
  const std::vector<Endpoint>& ys = tensors.ys;
  const size_t first_id = graph.end_id();
  for (bool is_first = true;; is_first = false) {
    TAGFLOW_RETURN_IF_ERROR(lower_calls(graph, tensors.xs, ys, limits));
    if (is_first)
      for (const auto& [frame, plan] : save)
        TAGFLOW_RETURN_IF_ERROR(set_save(graph, frame, plan));
    const bool is_open = has_open_loop(graph);
    if (!is_open)
      TAGFLOW_RETURN_IF_ERROR(
          graph::infer_loop_shapes(graph, {}, limits.budget));
    PreparedGraph made;
    made.calls = std::make_unique<CallTable>();
    TAGFLOW_ASSIGN(made.analysis, Analysis::make(graph, made.calls.get()));
    Analysis& analysis = *made.analysis;
    for (const Endpoint& x : tensors.xs) made.xs.push_back(lowered_output(x));
    for (const Endpoint& stop : tensors.stops)
      made.stops.insert(lowered_output(stop));
    made.frame = analysis.output_frame(*ys[0].node);
    TAGFLOW_RETURN_IF_ERROR(
        check_frames(analysis, made.frame, is_open, ys, made.xs));
    made.paths =
        std::make_unique<Paths>(analysis, made.frame, made.xs, ys, made.stops);
    // A replacement may reveal more calls or stacks to replace.
    if (const auto pops = made.paths->hidden_pops(ys); !pops.empty()) {
      TAGFLOW_RETURN_IF_ERROR(make_stacks_persistent(analysis, pops));
      continue;
    }
    if (const auto readers = readers_of_references(graph, *made.paths);
        !readers.empty()) {
      TAGFLOW_RETURN_IF_ERROR(graph::dereference(graph, readers));
      continue;
    }
    TAGFLOW_RETURN_IF_ERROR(check_gradient_arrays(analysis, *made.paths, ys));
    TAGFLOW_RETURN_IF_ERROR(extend_calls(analysis, *made.calls, made.frame,
                                         made.xs, ys, made.stops, limits));
    // The paths through calls are known now.
    if (!made.calls->functions.empty())
      made.paths = std::make_unique<Paths>(analysis, made.frame, made.xs, ys,
                                           made.stops);
    tell_builder(scope, analysis, made.frame, first_id, *ys[0].node);
    return made;
  }
}

std::vector<Endpoint> endpoints_of(const Outputs& outputs) {
  std::vector<Endpoint> list;
  for (const Output& output : outputs) list.push_back(output.endpoint());
  return list;
}

Status check_same_kind(const Analysis& analysis, const Output& given,
                       const Output& like, std::string_view what,
                       std::string_view like_what) {
  DataType dtype = remove_ref(like.dtype());
  PartialShape shape = like.shape();
  if (dtype == DataType::kResource) {
    const Node* variable = analysis.variable_of(like.endpoint());
    if (variable == nullptr) return {};
    TAGFLOW_ASSIGN(dtype, variable->attr<DataType>("dtype"));
    const auto known = variable->attr<PartialShape>("shape");
    shape = known.ok() ? *known : PartialShape();
  }
  return check_kind(given, dtype, shape, like, what, like_what);
}

Status check_kind(const Output& given, DataType dtype,
                  const PartialShape& shape, const Output& like,
                  std::string_view what, std::string_view like_what) {
  if (remove_ref(given.dtype()) == dtype && given.shape().compatible(shape))
    return {};
  return invalid_argument(
      "[gradients] {} (\"{}\") is {}{}, but {} \"{}\" is {}{}", what,
      given.name(), dtype_name(given.dtype()), given.shape().to_string(),
      like_what, like.name(), dtype_name(dtype), shape.to_string());
}

}  // namespace tagflow::autodiff
