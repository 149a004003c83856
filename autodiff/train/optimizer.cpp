#include "autodiff/train/optimizer.h"

#include "autodiff/gradients.h"
#include "autodiff/train/optimizer_step.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

using graph::Context;
using graph::Outputs;
using graph::Scope;
using graph::ScopedVariable;
using graph::VariableScope;

namespace {

// The handle as it is in the loop of `loss`, if it is in one: Note [Capture] in
// graph/builder/context.h.
Output handle_beside(const Scope& s, const Output& handle, const Output& loss) {
  if (!loss.valid()) return handle;
  graph::BuilderState& state = graph::ScopeAccess::state(s);
  Context* context = state.context_of(loss.node());
  while (context != nullptr && context->kind == Context::Kind::kBranch)
    context = context->parent;
  const auto inside =
      state.route(handle.endpoint(), context, handle.node()->name());
  if (inside.ok()) return Output(*inside);
  s.fail(inside.status());
  return {};
}

}  // namespace

std::vector<VariableGradient> compute_gradients(
    const Scope& s, const Output& loss,
    const std::vector<ScopedVariable>& variables) {
  if (s.ok() && variables.empty())
    s.fail(invalid_argument("[Optimizer] there are no variables to train"));
  std::vector<VariableGradient> list;
  Outputs handles;
  for (const ScopedVariable& variable : variables) {
    if (variable.parts().empty())
      s.fail(invalid_argument(
          "[Optimizer] \"{}\" is a value, which cannot be trained",
          variable.name()));
    for (size_t i = 0; i < variable.parts().size() && s.ok(); ++i) {
      const Output handle = variable.parts()[i].variable.handle;
      list.push_back({variable, {}, i});
      handles.push_back(handle_beside(s, handle, loss));
    }
  }
  const std::vector<Gradient> found = gradients(s, loss, handles);
  for (size_t i = 0; i < list.size(); ++i) list[i].gradient = found[i];
  return list;
}

ScopedVariable global_step(const Scope& s, const VariableScope& vars) {
  return vars.with_reuse(graph::Reuse::kAuto)
      .get(s, "global_step", {},
           {.dtype = DataType::kInt64,
            .initializer = graph::initializers::zeros(),
            .trainable = false,
            .collections = {"global_step"}});
}

Optimizer::Optimizer(const VariableScope& vars, graph::Input learning_rate,
                     UpdateRule rule)
    : state_(std::make_shared<State>(
          State{vars, std::move(learning_rate), std::move(rule)})) {}

Output Optimizer::minimize(const Scope& s, const Output& loss,
                           const std::vector<ScopedVariable>& variables,
                           const ApplyOptions& options) const {
  const Scope in = s.sub_scope(state_->rule.name);
  return Step(in, *state_)
      .run(s, compute_gradients(in, loss, variables), loss, options);
}

Output Optimizer::apply_gradients(
    const Scope& s, const std::vector<VariableGradient>& gradients,
    const ApplyOptions& options) const {
  return Step(s.sub_scope(state_->rule.name), *state_)
      .run(s, gradients, {}, options);
}

ScopedVariable Optimizer::slot(const ScopedVariable& variable,
                               std::string_view name) const {
  const auto found = state_->slots.find(variable.name());
  if (found == state_->slots.end()) return {};
  for (size_t i = 0; i < found->second.size(); ++i)
    if (state_->rule.slots[i].name == name) return found->second[i];
  return {};
}

}  // namespace tagflow::autodiff
