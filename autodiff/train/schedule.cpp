#include "autodiff/train/schedule.h"

#include <algorithm>
#include <functional>
#include <numbers>

#include "autodiff/train/values.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff::schedules {

namespace ops = graph::ops;
using graph::Input;
using graph::Scope;

namespace {

// The common part of schedules: a rate and the progress.
struct Course {
  Scope in;
  Output rate;
  Output progress;  // step / steps

  Course(const Scope& s, const char* name, const Input& full, const Input& step,
         int64_t steps)
      : in(graph::ScopeAccess::construct_scope(s, name)) {
    if (in.ok() && steps < 1)
      in.fail(invalid_argument("[{}] \"{}\" is for 1 step or more, not {}",
                               name, graph::ScopeAccess::name(in), steps));
    const DataType dtype =
        is_floating(full.dtype()) ? full.dtype() : DataType::kFloat;
    rate = typed_value(in, full, dtype, "rate");
    const Output done = typed_value(in, step, dtype, "step");
    progress = ops::real_div(in, done, steps);
  }

  Output scaled(const Output& factor) const {
    return ops::mul(in, rate, factor);
  }
  // start + (1 - start) x.
  Output raised(const Output& x, double start) const {
    return ops::add(in, ops::mul(in, x, 1 - start), start);
  }
};

}  // namespace

Output exponential_decay(const Scope& s, const Input& rate, const Input& step,
                         const ExponentialDecay& options) {
  const Course c(s, "exponential_decay", rate, step, options.decay_steps);
  if (!(options.decay_rate > 0))
    c.in.fail(invalid_argument(
        "[exponential_decay] \"{}\": decay_rate {} is not positive",
        graph::ScopeAccess::name(c.in), options.decay_rate));
  const Output power =
      options.staircase ? ops::floor(c.in, c.progress) : c.progress;
  return c.scaled(ops::pow(c.in, options.decay_rate, power));
}

Output cosine_decay(const Scope& s, const Input& rate, const Input& step,
                    const CosineDecay& options) {
  const Course c(s, "cosine_decay", rate, step, options.decay_steps);
  const Output angle =
      ops::mul(c.in, ops::minimum(c.in, c.progress, 1), std::numbers::pi);
  const Output half =
      ops::mul(c.in, ops::add(c.in, ops::cos(c.in, angle), 1), 0.5);
  return c.scaled(c.raised(half, options.alpha));
}

Output piecewise_constant(const Scope& s, const Input& step,
                          const std::vector<int64_t>& boundaries,
                          const std::vector<double>& rates, DataType dtype) {
  const Scope in = graph::ScopeAccess::construct_scope(s, "piecewise_constant");
  const bool grows =
      std::ranges::adjacent_find(boundaries, std::greater_equal<>()) ==
      boundaries.end();
  if (in.ok() && (!grows || rates.size() != boundaries.size() + 1))
    in.fail(invalid_argument(
        "[piecewise_constant] \"{}\": {} rates for {} boundaries; there must "
        "be one more, and each boundary above the one before",
        graph::ScopeAccess::name(in), rates.size(), boundaries.size()));
  if (!in.ok()) return {};
  const Tensor values = Tensor::of<double>({int64_t(rates.size())}, rates);
  const Output all = typed_value(in, ops::constant(in, values), dtype, "rates");
  const Tensor ends =
      Tensor::of<int64_t>({int64_t(boundaries.size())}, boundaries);
  const Output now = in.resolve(step, DataType::kInt64, "step");
  // The number of boundaries already passed.
  const Output limits =
      typed_value(in, ops::constant(in, ends), now.dtype(), "boundaries");
  const Output passed = ops::greater(in, ops::expand_dims(in, now, -1), limits);
  const Output count =
      ops::reduce_sum(in, ops::cast(in, passed, DataType::kInt32), -1);
  return ops::gather(in, all, count);
}

Output warmup(const Scope& s, const Input& rate, const Input& step,
              const Warmup& options) {
  const Course c(s, "warmup", rate, step, options.steps);
  return c.scaled(c.raised(ops::minimum(c.in, c.progress, 1), options.start));
}

}  // namespace tagflow::autodiff::schedules
