#include "autodiff/arguments.h"

#include "autodiff/lower_calls.h"
#include "graph/builder/scope_access.h"
#include "graph/loop_shapes.h"

namespace tagflow::autodiff {

using graph::Scope;

namespace {

Status check_tensor(const Scope& scope, const Output& output, const char* what,
                    size_t i) {
  if (!output.has_tensor())
    return invalid_argument("[gradients] {} {} is no tensor", what, i);
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

Result<FrameId> common_frame(const Analysis& analysis,
                             const Arguments& arguments) {
  const Output& first = *arguments.ys.begin();
  const FrameId frame = analysis.output_frame(*first.node());
  const auto name = [&](FrameId id) {
    return id == FrameId::kRoot ? std::string("outside of all loops")
                                : fmt::format("in the loop of frame \"{}\"",
                                              analysis.frame(id).name);
  };
  for (const auto& [list, what] :
       {std::pair(&arguments.ys, "y"), std::pair(&arguments.xs, "x")})
    for (const Output& output : *list)
      if (const FrameId own = analysis.output_frame(*output.node());
          own != frame)
        return invalid_argument(
            "[gradients] y \"{}\" is {}, but {} \"{}\" is {}", first.name(),
            name(frame), what, output.name(), name(own));
  return frame;
}

// Nodes that lowering has put into a loop that is being built are of the branch
// or loop that the ys are in.
void tell_builder(const Scope& scope, const Analysis& analysis, FrameId frame,
                  size_t first_id, const Node& y) {
  if (frame == FrameId::kRoot) return;
  graph::BuilderState& state = graph::ScopeAccess::state(scope);
  for (const Node* node : scope.graph().nodes())
    if (node->id() >= first_id && analysis.output_frame(*node) == frame)
      state.set_context(node, state.context_of(&y));
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

Result<Prepared> prepare(const Scope& scope, const Arguments& arguments) {
  TAGFLOW_RETURN_IF_ERROR(arguments.check(scope));
  Graph& graph = scope.graph();
  const std::vector<Endpoint> xs = endpoints_of(arguments.xs);
  const std::vector<Endpoint> ys = endpoints_of(arguments.ys);
  const size_t first_id = graph.end_id();
  TAGFLOW_RETURN_IF_ERROR(lower_calls(graph, xs, ys));
  if (!has_open_loop(graph))
    TAGFLOW_RETURN_IF_ERROR(graph::infer_loop_shapes(graph));
  Prepared made;
  TAGFLOW_ASSIGN(made.analysis, Analysis::make(graph));
  TAGFLOW_ASSIGN(made.frame, common_frame(*made.analysis, arguments));
  tell_builder(scope, *made.analysis, made.frame, first_id, *ys[0].node);
  Paths::Set stops;
  for (const Endpoint& stop : endpoints_of(arguments.stop_gradients))
    stops.insert(stop);
  made.paths =
      std::make_unique<Paths>(*made.analysis, made.frame, xs, ys, stops);
  if (const Node* pop = made.paths->hidden_pop(ys))
    return error(Code::kUnimplemented,
                 "[gradients] node \"{}\" pops what a value that depends on "
                 "an x was pushed as: mutable stacks, as TensorFlow's own "
                 "gradients of loops have them, have no gradient",
                 pop->name());
  return made;
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
  if (remove_ref(given.dtype()) == dtype && given.shape().compatible(shape))
    return {};
  return invalid_argument(
      "[gradients] {} (\"{}\") is {}{}, but {} \"{}\" is {}{}", what,
      given.name(), dtype_name(given.dtype()), given.shape().to_string(),
      like_what, like.name(), dtype_name(dtype), shape.to_string());
}

}  // namespace tagflow::autodiff
