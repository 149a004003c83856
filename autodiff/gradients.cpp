#include "autodiff/gradients.h"

#include <algorithm>

#include "autodiff/differentiate.h"
#include "autodiff/paths.h"
#include "autodiff/symbolic_gradient.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Endpoint;
using graph::Outputs;
using graph::Scope;

namespace {

// One call of gradients().
class Gradients {
 public:
  Gradients(const Scope& scope, const Outputs& ys, const Outputs& xs,
            const GradientOptions& options, bool are_dense)
      : scope_(scope),
        ys_(ys),
        xs_(xs),
        options_(options),
        are_dense_(are_dense) {}

  Result<std::vector<Gradient>> run() {
    TAGFLOW_RETURN_IF_ERROR(check());
    Differentiand what;
    what.ys = endpoints(ys_);
    what.xs = endpoints(xs_);
    what.stops = endpoints(options_.stop_gradients);
    what.grad_of = [this](size_t i) { return Gradient{grad_of(i)}; };
    what.num_dense = are_dense_ ? xs_.size() : 0;
    what.zeros_if_unconnected = options_.zeros_if_unconnected;
    what.kept = options_.kept;
    what.save = options_.save;
    what.check_liveness = options_.check_liveness;
    what.has_own_grads = !options_.grad_ys.empty();
    return differentiate(scope_, what);
  }

  static std::vector<Endpoint> endpoints(const Outputs& outputs) {
    std::vector<Endpoint> list;
    for (const Output& output : outputs) list.push_back(output.endpoint());
    return list;
  }

 private:
  Status check() const {
    if (ys_.empty()) return invalid_argument("[gradients] there are no ys");
    for (const auto& [list, what] :
         {std::pair(&ys_, "y"), std::pair(&xs_, "x"),
          std::pair(&options_.stop_gradients, "stop_gradient")})
      for (size_t i = 0; i < list->size(); ++i)
        TAGFLOW_RETURN_IF_ERROR(check_tensor((*list)[i], what, i));
    for (size_t i = 0; i < ys_.size(); ++i)
      if (!is_floating(remove_ref(ys_[i].dtype())) &&
          !is_complex(remove_ref(ys_[i].dtype())))
        return invalid_argument(
            "[gradients] y {} (\"{}\") is {}, which has no "
            "derivative",
            i, ys_[i].name(), dtype_name(ys_[i].dtype()));
    for (size_t i = 0; i < xs_.size(); ++i)
      if (!has_gradient(xs_[i].dtype()))
        return invalid_argument(
            "[gradients] x {} (\"{}\") is {}, by which "
            "nothing has a derivative",
            i, xs_[i].name(), dtype_name(xs_[i].dtype()));
    if (options_.grad_ys.size() > ys_.size())
      return invalid_argument("[gradients] there are {} grad_ys for {} ys",
                              options_.grad_ys.size(), ys_.size());
    return {};
  }

  Status check_tensor(const Output& output, const char* what, size_t i) const {
    if (!output.has_tensor())
      return invalid_argument("[gradients] {} {} is no tensor", what, i);
    if (!scope_.graph().owns(output.node()))
      return invalid_argument("[gradients] {} {} (\"{}\") is of another graph",
                              what, i, output.name());
    return {};
  }

  // Ones where none is given: of y itself, so that they are as live as y.
  Output grad_of(size_t i) const {
    const Output y = ys_[i];
    const Output given =
        i < options_.grad_ys.size() ? options_.grad_ys[i] : Output();
    if (!given.valid())
      return ops::ones_like(scope_.with_device(y.node()->device()), y);
    if (remove_ref(given.dtype()) != remove_ref(y.dtype()) ||
        !given.shape().compatible(y.shape()))
      scope_.fail(invalid_argument(
          "[gradients] grad_y {} (\"{}\") is {}{}, but y \"{}\" is {}{}", i,
          given.name(), dtype_name(given.dtype()), given.shape().to_string(),
          y.name(), dtype_name(y.dtype()), y.shape().to_string()));
    return given;
  }

  const Scope scope_;
  const Outputs ys_;
  const Outputs xs_;
  const GradientOptions& options_;
  const bool are_dense_;
};

std::vector<Gradient> make_gradients(const Scope& scope, const Outputs& ys,
                                     const Outputs& xs,
                                     const GradientOptions& options,
                                     bool are_dense) {
  enable_symbolic_gradients();
  if (scope.ok()) {
    const Scope inside = graph::ScopeAccess::construct_scope(
        scope.without_control_dependencies(), "gradients");
    auto made = Gradients(inside, ys, xs, options, are_dense).run();
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
