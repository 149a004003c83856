#include "autodiff/gradients.h"

#include "autodiff/arguments.h"
#include "autodiff/differentiate.h"
#include "autodiff/symbolic_gradient.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

using graph::Outputs;
using graph::Scope;

namespace {

Status check(const Scope& scope, const Arguments& arguments,
             const Outputs& grad_ys) {
  TAGFLOW_RETURN_IF_ERROR(arguments.check(scope));
  const Outputs& ys = arguments.ys;
  if (grad_ys.size() > ys.size())
    return invalid_argument("[gradients] there are {} grad_ys for {} ys",
                            grad_ys.size(), ys.size());
  for (size_t i = 0; i < grad_ys.size(); ++i)
    if (grad_ys[i].valid())
      TAGFLOW_RETURN_IF_ERROR(check_kind(grad_ys[i], remove_ref(ys[i].dtype()),
                                         ys[i].shape(), ys[i],
                                         fmt::format("grad_y {}", i), "y"));
  return {};
}

Result<std::vector<Gradient>> differentiate(const Scope& scope,
                                            const Arguments& arguments,
                                            const GradientOptions& options,
                                            bool are_dense) {
  TAGFLOW_RETURN_IF_ERROR(check(scope, arguments, options.grad_ys));
  Differentiand what;
  what.ys = endpoints_of(arguments.ys);
  what.xs = endpoints_of(arguments.xs);
  what.stops = endpoints_of(arguments.stop_gradients);
  what.grad_of = [&](size_t i) {
    return i < options.grad_ys.size() ? Gradient{options.grad_ys[i]}
                                      : Gradient{};
  };
  what.num_dense = are_dense ? what.xs.size() : 0;
  what.zeros_if_unconnected = options.zeros_if_unconnected;
  what.kept = options.kept;
  what.save = options.save;
  what.check_liveness = options.check_liveness;
  what.has_own_grads = !options.grad_ys.empty();
  return autodiff::differentiate(scope, what);
}

std::vector<Gradient> make_gradients(const Scope& scope, const Outputs& ys,
                                     const Outputs& xs,
                                     const GradientOptions& options,
                                     bool are_dense) {
  enable_symbolic_gradients();
  if (scope.ok()) {
    const Scope inside = graph::ScopeAccess::construct_scope(
        scope.without_control_dependencies(), "gradients");
    auto made = differentiate(inside, {ys, xs, options.stop_gradients}, options,
                              are_dense);
    if (made.ok()) return *std::move(made);
    scope.fail(std::move(made).status());
  }
  return std::vector<Gradient>(xs.size());
}

}  // namespace

std::vector<Gradient> gradients(const Scope& scope, const Outputs& ys,
                                const Outputs& xs,
                                const GradientOptions& options) {
  return make_gradients(scope, ys, xs, options, false);
}

Outputs dense_gradients(const Scope& scope, const Outputs& ys,
                        const Outputs& xs, const GradientOptions& options) {
  Outputs results;
  for (const Gradient& gradient : make_gradients(scope, ys, xs, options, true))
    results.push_back(gradient.values);
  return results;
}

}  // namespace tagflow::autodiff
