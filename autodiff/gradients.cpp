#include "autodiff/gradients.h"

#include <deque>
#include <memory>

#include "autodiff/arguments.h"
#include "autodiff/backprop.h"
#include "autodiff/liveness_check.h"
#include "autodiff/symbolic_gradient.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Outputs;
using graph::Scope;

namespace {

// Ones where none is given: of y itself, so that they are as live as y.
Result<Output> grad_of(const Scope& scope, const Analysis& analysis,
                       const Output& y, size_t i,
                       const GradientOptions& options) {
  if (i >= options.grad_ys.size() || !options.grad_ys[i].valid())
    return ops::ones_like(scope.with_device(y.node()->device()), y);
  TAGFLOW_RETURN_IF_ERROR(check_same_kind(analysis, options.grad_ys[i], y,
                                          fmt::format("grad_y {}", i), "y"));
  return options.grad_ys[i];
}

class Walk {
 public:
  Walk(const Scope& scope, const Outputs& ys, const Prepared& made,
       const GradientOptions& options)
      : scope_(scope),
        ys_(ys),
        made_(made),
        options_(options),
        all_{*made.analysis, *made.paths, graph::ScopeAccess::name(scope)} {}

  // From the frame of ys outwards, to those of xs. What is the same in all
  // iterations of a loop leads out of it, by what it enters as; its gradient is
  // that of the iteration, and is computed there.
  Result<std::vector<Gradient>> run(bool are_dense) {
    const std::vector<Endpoint>& xs = made_.xs;
    std::vector<Gradient> results(xs.size());
    Analysis& analysis = *made_.analysis;
    std::unique_ptr<Backprop> inner;
    for (FrameId at = made_.frame, inside = at;;
         inside = at, at = analysis.parent(at)) {
      PlainRegion& region = regions_.emplace_back(analysis, at, scope_);
      auto walk = std::make_unique<Backprop>(all_, region);
      if (inner == nullptr) {
        TAGFLOW_RETURN_IF_ERROR(seed(*walk));
      } else {
        for (Node* enter : analysis.frame(inside).enters)
          if (const Gradient grad = inner->total({enter, 0}); grad.valid())
            walk->seed(enter->inputs()[0], grad);
      }
      walk->run();
      // Gradients that were given may be live where they please.
      if (options_.grad_ys.empty())
        for (const auto& [tensor, gradient] : walk->totals())
          pairs_.emplace_back(tensor, gradient.values.endpoint());
      for (size_t i = 0; i < xs.size(); ++i) {
        if (analysis.output_frame(*xs[i].node) != at) continue;
        results[i] = walk->total(xs[i]);
        if (!results[i].valid() && options_.zeros_if_unconnected)
          results[i] = {region.zeros(xs[i])};
        if (are_dense) results[i] = {walk->dense(xs[i], results[i])};
      }
      if (at == FrameId::kRoot) return results;
      inner = std::move(walk);
    }
  }
  const std::vector<GradientPair>& pairs() const { return pairs_; }

 private:
  Status seed(Backprop& walk) {
    for (size_t i = 0; i < ys_.size(); ++i) {
      if (!made_.paths->has(ys_[i].endpoint())) continue;
      TAGFLOW_ASSIGN(const Output grad,
                     grad_of(scope_, *made_.analysis, ys_[i], i, options_));
      walk.seed(ys_[i].endpoint(), {grad});
    }
    return {};
  }

  const Scope& scope_;
  const Outputs& ys_;
  const Prepared& made_;
  const GradientOptions& options_;
  Differentiation all_;
  std::deque<PlainRegion> regions_;
  std::vector<GradientPair> pairs_;
};

Result<std::vector<Gradient>> walk_back(const Scope& scope,
                                        const Arguments& arguments,
                                        const GradientOptions& options,
                                        bool are_dense) {
  const Outputs& ys = arguments.ys;
  if (options.grad_ys.size() > ys.size())
    return invalid_argument("[gradients] there are {} grad_ys for {} ys",
                            options.grad_ys.size(), ys.size());
  TAGFLOW_ASSIGN(const Prepared made, prepare(scope, arguments));
  const auto first = graph::NodeId(scope.graph().end_id());
  Walk walk(scope, ys, made, options);
  TAGFLOW_ASSIGN(std::vector<Gradient> results, walk.run(are_dense));
  if (options.kept != nullptr)
    for (KeptValue& kept : made.analysis->take_notes())
      options.kept->push_back(std::move(kept));
  TAGFLOW_RETURN_IF_ERROR(scope.status());
  if (options.check_liveness)
    TAGFLOW_RETURN_IF_ERROR(check_liveness(scope.graph(), first, walk.pairs()));
  return results;
}

std::vector<Gradient> make_gradients(const Scope& scope, const Outputs& ys,
                                     const Outputs& xs,
                                     const GradientOptions& options,
                                     bool are_dense) {
  enable_symbolic_gradients();
  if (scope.ok()) {
    const Scope inside = graph::ScopeAccess::construct_scope(
        scope.without_control_dependencies(), "gradients");
    auto made =
        walk_back(inside, {ys, xs, options.stop_gradients}, options, are_dense);
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
