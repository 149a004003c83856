// Layers that behave differently in training and inference.
#include <numeric>

#include "autodiff/train/layer.h"
#include "autodiff/train/values.h"
#include "graph/builder/control_flow.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff::layers {

namespace ops = graph::ops;
using graph::Input;
using graph::Outputs;
using graph::Scope;
using graph::ScopeAccess;
using graph::ScopedVariable;
using graph::VariableScope;

namespace {

// Whether it is the literal `value`.
bool is_known(const Input& input, bool value) {
  return input.is_literal() && input.literal().dtype() == DataType::kBool &&
         input.literal().rank() == 0 &&
         input.literal().scalar_value<bool>() == value;
}

// The variables of one batch_norm(), each a number for each channel.
struct Moments {
  ScopedVariable mean, variance;
};

// Mean and variance over all dimensions but the last.
Outputs batch_moments(const Scope& s, const Output& x) {
  std::vector<int32_t> axes(size_t(x.shape().rank() - 1));
  std::iota(axes.begin(), axes.end(), 0);
  const Output over =
      ops::constant(s, Tensor::of<int32_t>({int64_t(axes.size())}, axes));
  const Output mean = ops::reduce_mean(s, x, over);
  return {mean, ops::reduce_mean(s, ops::squared_difference(s, x, mean), over)};
}

// An operation: moving = momentum * moving + (1 - momentum) * now.
Output moved(const Scope& s, const ScopedVariable& moving, const Output& now,
             double momentum) {
  const Output gap = ops::sub(s, now, moving.read(s));
  if (!s.ok() || moving.parts().size() != 1) return {};
  return ops::assign_add(s, moving.parts()[0].variable,
                         ops::mul(s, gap, 1 - momentum));
}

}  // namespace

BatchNorm batch_norm(const Scope& s, const VariableScope& vars, const Output& x,
                     const BatchNormOptions& options) {
  const std::string& name = options.name;
  const VariableScope own = name.empty()
                                ? vars.unique_scope("batch_normalization")
                                : vars.sub_scope(name);
  const Scope in = ScopeAccess::construct_scope(
      s, name.empty() ? "batch_normalization" : name);
  const PartialShape shape = x.shape();
  const int last = shape.has_rank() ? shape.rank() - 1 : -1;
  if (in.ok() && (last < 1 || !shape.dim_known(last)))
    in.fail(invalid_argument(
        "[batch_norm] \"{}\": the input is of shape {}; it must have 2 or more "
        "dimensions, and the last one be known",
        ScopeAccess::name(in), shape.to_string()));
  if (!in.ok()) return {};
  const DataType dtype = sum_type(x.dtype());
  const auto variable = [&](const char* what, double initial, bool trainable) {
    return own.with_partitioner({}).get(
        in, what, {shape.dim(last)},
        {.dtype = dtype,
         .initializer = graph::initializers::constant(initial),
         .trainable = trainable});
  };
  const Output gamma = variable("gamma", 1, true).read(in);
  const Output beta = variable("beta", 0, true).read(in);
  const Moments moving{variable("moving_mean", 0, false),
                       variable("moving_variance", 1, false)};
  const Output wide = typed_value(in, x, dtype, "x");
  const auto by_batch = [&](const Scope& at) -> Outputs {
    return batch_moments(at, wide);
  };
  const auto by_moving = [&](const Scope& at) -> Outputs {
    return {moving.mean.read(at), moving.variance.read(at)};
  };
  const bool is_training = is_known(options.training, true);
  const bool is_over = is_known(options.training, false);
  // If `training` is a tensor that is false, the updates add zeros.
  const Outputs moments =
      is_training ? by_batch(in)
      : is_over   ? by_moving(in)
                  : graph::cond(in, options.training, by_batch, by_moving);
  const Output scale = ops::mul(
      in, ops::rsqrt(in, ops::add(in, moments[1], options.epsilon)), gamma);
  const Output centered = ops::sub(in, wide, moments[0]);
  const Output y = ops::add(in, ops::mul(in, centered, scale), beta);
  BatchNorm result{typed_value(in, y, x.dtype(), "y"), {}};
  if (!is_over)
    result.updates = {moved(in, moving.mean, moments[0], options.momentum),
                      moved(in, moving.variance, moments[1], options.momentum)};
  return result;
}

Output dropout(const Scope& s, const Output& x, const Input& seed,
               const DropoutOptions& options) {
  const Scope in = ScopeAccess::construct_scope(s, "dropout");
  const double rate = options.rate;
  if (in.ok() && !(rate >= 0 && rate < 1))
    in.fail(
        invalid_argument("[dropout] \"{}\": the rate {} is not within [0, 1)",
                         ScopeAccess::name(in), rate));
  if (!in.ok()) return {};
  if (rate == 0 || is_known(options.training, false)) return x;
  const graph::OpResult key =
      in.op("StatelessRandomGetKeyCounter",
            {in.resolve(seed, DataType::kInt64, "seed")});
  constexpr int32_t kPhilox = 1;
  const Output drawn = in.op("StatelessRandomUniformV2",
                             {ops::shape(in, x), key[0], key[1], kPhilox},
                             {{"dtype", x.dtype()}});
  // A select, not a product: dropped elements may be infinite.
  const Output kept = ops::select(in, ops::greater_equal(in, drawn, rate),
                                  ops::mul(in, x, 1 / (1 - rate)), 0);
  if (is_known(options.training, true)) return kept;
  return ops::select(in, options.training, kept, x);
}

}  // namespace tagflow::autodiff::layers
