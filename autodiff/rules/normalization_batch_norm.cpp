// FusedBatchNorm, V1 to V3.
#include "autodiff/rules/normalization_batch_norm.h"

#include "autodiff/rules/attributes.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

NormMath::NormMath(RuleContext& r) : r_(r), s_(r.scope()) {
  const auto format = r.attr<std::string>("data_format");
  const size_t channel =
      format.size() > 1 && format[1] == 'C' ? 1 : format.size() - 1;
  for (size_t i = 0; i < format.size(); ++i) {
    if (i != channel) reduced_.push_back(int64_t(i));
    row_shape_.push_back(i == channel ? -1 : 1);
  }
}

Output NormMath::single(const Output& x) const {
  return x.dtype() == DataType::kFloat ? x : ops::cast(s_, x, DataType::kFloat);
}

Output NormMath::row(const Output& vector) const {
  return ops::reshape(s_, single(vector), r_.ints(row_shape_));
}

Output NormMath::sum(const Output& x) const {
  return ops::reduce_sum(s_, x, r_.ints(reduced_), {.keep_dims = true});
}

Output NormMath::mean(const Output& x) const {
  return ops::reduce_mean(s_, x, r_.ints(reduced_), {.keep_dims = true});
}

Output NormMath::mean_of_product(const Output& x, const Output& y) const {
  return mean(ops::mul(s_, x, y));
}

Output NormMath::inverse_deviation(const Output& variance) const {
  const double epsilon = r_.attr<float>("epsilon");
  return ops::rsqrt(s_, ops::add(s_, single(variance), epsilon));
}

Output NormMath::count(int input) const {
  const Output dims = ops::gather(s_, r_.input_shape(input), r_.ints(reduced_));
  return ops::cast(s_, ops::reduce_prod(s_, dims, 0), DataType::kFloat);
}

Output NormMath::plus(const Output& x, const Output& y) const {
  if (!x.valid() || !y.valid()) return x.valid() ? x : y;
  return ops::add(s_, single(x), y);
}

void NormMath::set(int input, const Output& gradient) const {
  const DataType dtype = r_.input_dtype(input);
  r_.set(input,
         gradient.dtype() == dtype ? gradient : ops::cast(s_, gradient, dtype));
}

void NormMath::set_vector(int input, const Output& row) const {
  set(input, ops::reshape(s_, row, r_.ints({-1})));
}

void NormMath::set_repeated(int input, const Output& row) const {
  set(input, ops::broadcast_to(s_, row, r_.input_shape(input)));
}

namespace {

enum NormInput { kX, kScale, kOffset, kMean, kVariance };

// The gradients of x, scale and offset through y.
graph::OpResult norm_grads(RuleContext& r, const Output& mean,
                           const Output& variance) {
  constexpr std::string_view kAttrs[] = {"epsilon", "data_format",
                                         "is_training"};
  graph::Inputs inputs = {r.grad(), r.input(kX), r.input(kScale), mean,
                          variance};
  std::string op = r.node().op();
  if (op == "FusedBatchNormV3") inputs.add(r.output(5));
  op.insert(std::string_view("FusedBatchNorm").size(), "Grad");
  return r.scope().op(op, inputs, copied_attrs(r.node(), kAttrs));
}

// The gradient of x through outputs 1 and 2. These are averages of the inputs
// with m and the unbiased variance v n / (n - 1).
Output from_averages(RuleContext& r, const NormMath& math) {
  const Scope& s = r.scope();
  const Output count = math.count(kX);
  Output sum;
  if (r.has_grad(1)) sum = ops::real_div(s, math.row(r.grad(1)), count);
  if (r.has_grad(2)) {
    const Output x = math.single(r.input(kX));
    const Output from_mean = ops::sub(s, x, math.mean(x));
    const Output others = ops::maximum(s, ops::sub(s, count, 1), 1);
    const Output slope = ops::real_div(s, ops::mul(s, from_mean, 2), others);
    sum = math.plus(sum, ops::mul(s, math.row(r.grad(2)), slope));
  }
  return ops::mul(s, ops::broadcast_to(s, sum, r.input_shape(kX)),
                  double(r.attr<float>("exponential_avg_factor")));
}

void train_norm(RuleContext& r, const NormMath& math) {
  const Scope& s = r.scope();
  Output of_x;
  if (r.has_grad()) {
    const graph::OpResult grads = norm_grads(r, r.output(3), r.output(4));
    r.set(kScale, grads[1]);
    r.set(kOffset, grads[2]);
    of_x = grads[0];
  }
  if (!r.has_grad(1) && !r.has_grad(2)) return r.set(kX, of_x);
  if (r.wants(kX)) math.set(kX, math.plus(of_x, from_averages(r, math)));
  const double old_part = 1 - double(r.attr<float>("exponential_avg_factor"));
  if (old_part == 0) return;
  for (int port : {1, 2})
    if (r.has_grad(port)) r.set(port + 2, ops::mul(s, r.grad(port), old_part));
}

// Outputs 1 and 2 are the given mean and variance. Through y these have the
// gradients -scale w doffset and -scale w^2 dscale / 2.
void infer_norm(RuleContext& r, const NormMath& math) {
  const Scope& s = r.scope();
  Output of_mean, of_variance;
  if (r.has_grad()) {
    const graph::OpResult grads =
        norm_grads(r, r.input(kMean), r.input(kVariance));
    for (int i : {kX, kScale, kOffset}) r.set(i, grads[i]);
    if (r.wants(kMean) || r.wants(kVariance)) {
      const Output w = math.inverse_deviation(r.input(kVariance));
      const Output slope = ops::neg(s, ops::mul(s, r.input(kScale), w));
      of_mean = ops::mul(s, slope, grads[2]);
      of_variance =
          ops::mul(s, ops::mul(s, slope, ops::mul(s, w, grads[1])), 0.5);
    }
  }
  if (r.has_grad(1)) of_mean = math.plus(of_mean, r.grad(1));
  if (r.has_grad(2)) of_variance = math.plus(of_variance, r.grad(2));
  r.set(kMean, of_mean);
  r.set(kVariance, of_variance);
}

void batch_norm_rule(RuleContext& r) {
  const NormMath math(r);
  if (r.attr<bool>("is_training"))
    train_norm(r, math);
  else
    infer_norm(r, math);
}

}  // namespace

void add_batch_norm_rules(RuleTable& table) {
  table.add({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"},
            batch_norm_rule);
}

}  // namespace tagflow::autodiff
