#include "autodiff/differentiate.h"

#include <deque>
#include <memory>

#include "autodiff/arguments.h"
#include "autodiff/backprop.h"
#include "autodiff/liveness_check.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

using graph::Scope;

namespace {

class Walk {
 public:
  Walk(const Scope& scope, const Differentiand& what, const PreparedGraph& made,
       const Blocks& blocks)
      : scope_(scope),
        what_(what),
        made_(made),
        all_{*made.analysis, *made.paths, blocks, made.stops,
             graph::ScopeAccess::name(scope)} {}

  // Walks from the frame of ys outwards, to those of xs. A loop-invariant
  // tensor leads out of its loop through its Enter; its gradient is that of the
  // iteration, and is computed there.
  std::vector<Gradient> run() {
    std::vector<Gradient> results(made_.xs.size());
    Analysis& analysis = *made_.analysis;
    std::unique_ptr<Backprop> inner;
    for (FrameId at = made_.frame, inside = at;;
         inside = at, at = analysis.parent(at)) {
      PlainRegion& region = regions_.emplace_back(analysis, at, scope_);
      auto walk = std::make_unique<Backprop>(all_, region);
      for (size_t i = 0; i < what_.sums.size(); ++i)
        if (what_.sums[i].valid() && is_in(made_.xs[i], at))
          walk->begin_sum(made_.xs[i], what_.sums[i]);
      seed(*walk, region, inner.get(), inside);
      walk->run();
      walk->end_sums();
      if (!what_.has_own_grads)
        for (const auto& [tensor, gradient] : walk->totals())
          pairs_.emplace_back(tensor, gradient.values.endpoint());
      for (size_t i = 0; i < results.size(); ++i)
        if (is_in(made_.xs[i], at)) results[i] = result(*walk, region, i);
      if (at == FrameId::kRoot) return results;
      inner = std::move(walk);
    }
  }
  const std::vector<GradientPair>& pairs() const { return pairs_; }

 private:
  bool is_in(const Endpoint& tensor, FrameId frame) {
    return made_.analysis->output_frame(*tensor.node) == frame;
  }

  void seed(Backprop& walk, Region& region, Backprop* inner, FrameId inside) {
    if (inner == nullptr) {
      for (size_t i = 0; i < what_.ys.size(); ++i) {
        const Endpoint& y = what_.ys[i];
        if (!made_.paths->has(y)) continue;
        const Gradient grad = what_.grad_of(i);
        walk.seed(y, grad.valid() ? grad : Gradient{region.ones(y)});
      }
      return;
    }
    for (Node* enter : made_.analysis->frame(inside).enters)
      if (const Gradient grad = inner->total({enter, 0}); grad.valid())
        walk.seed(enter->inputs()[0], grad);
  }

  Gradient result(Backprop& walk, Region& region, size_t i) {
    const Endpoint& x = made_.xs[i];
    Gradient total = walk.total(x);
    if (!total.valid() && what_.zeros_if_unconnected) total = {region.zeros(x)};
    return i < what_.num_dense ? Gradient{walk.dense(x, total)} : total;
  }

  const Scope& scope_;
  const Differentiand& what_;
  const PreparedGraph& made_;
  Differentiation all_;
  std::deque<PlainRegion> regions_;
  std::vector<GradientPair> pairs_;
};

}  // namespace

Result<std::vector<Gradient>> differentiate(const Scope& scope,
                                            const Differentiand& what) {
  TAGFLOW_ASSIGN(
      const PreparedGraph made,
      prepare(scope, Tensors{what.ys, what.xs, what.stops}, what.save));
  made.analysis->set_in_loop(what.is_in_loop);
  const auto first = graph::NodeId(scope.graph().end_id());
  TAGFLOW_ASSIGN(const Blocks blocks,
                 Blocks::find(*made.analysis, *made.paths, made.xs, what.ys));
  Walk walk(scope, what, made, blocks);
  std::vector<Gradient> results = walk.run();
  if (what.kept != nullptr)
    for (KeptValue& kept : made.analysis->take_notes())
      what.kept->push_back(std::move(kept));
  TAGFLOW_RETURN_IF_ERROR(scope.status());
  if (what.check_liveness)
    TAGFLOW_RETURN_IF_ERROR(check_liveness(scope.graph(), first, walk.pairs()));
  return results;
}

}  // namespace tagflow::autodiff
