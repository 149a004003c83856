// The gradient of FusedBatchNormGrad, V1 to V3. The formulas, and the letters
// in them, are those of Note [Batch normalisation].
#include "autodiff/rules/normalization_batch_norm.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

enum NormGradInput { kGradDy, kGradX, kGradScale, kGradMean, kGradVariance };

// With doffset only, all rows are equal.
void set_dy(RuleContext& r, const NormMath& math, const Output& of_dy) {
  if (r.has_grad(0) || r.has_grad(1)) return math.set(kGradDy, of_dy);
  if (r.has_grad(2)) math.set_repeated(kGradDy, of_dy);
}

// a, b and c are invalid if they are zero.
void train_norm_grad(RuleContext& r, const NormMath& math) {
  const Scope& s = r.scope();
  const Output x = math.single(r.input(kGradX));
  const Output from_mean = ops::sub(s, x, math.mean(x));
  const Output w = math.inverse_deviation(math.mean(ops::square(s, from_mean)));
  const Output z = ops::mul(s, from_mean, w);
  const Output w_scale = ops::mul(s, w, math.row(r.input(kGradScale)));
  const auto project = [&](const Output& u) {
    const Output along = ops::mul(s, z, math.mean_of_product(u, z));
    return ops::sub(s, ops::sub(s, u, math.mean(u)), along);
  };
  const Output dy = math.single(r.input(kGradDy));
  const Output a = r.has_grad(0) ? math.single(r.grad(0)) : Output();
  const Output b = r.has_grad(1) ? math.row(r.grad(1)) : Output();
  const Output c = r.has_grad(2) ? math.row(r.grad(2)) : Output();

  Output of_dy = c, of_x;
  if (b.valid()) of_dy = math.plus(of_dy, ops::mul(s, b, z));
  if (b.valid() && r.wants(kGradX)) of_x = ops::mul(s, b, project(dy));
  if (a.valid()) {
    const Output of_a = project(a), of_d = project(dy);
    of_dy = math.plus(of_dy, ops::mul(s, w_scale, of_a));
    const Output common = ops::mul(s, a, of_d);
    math.set_vector(kGradScale, ops::mul(s, w, math.sum(common)));
    if (r.wants(kGradX)) {
      const Output parts =
          ops::add_n(s, {ops::mul(s, math.mean(common), z),
                         ops::mul(s, math.mean_of_product(dy, z), of_a),
                         ops::mul(s, math.mean_of_product(a, z), of_d)});
      of_x = math.plus(of_x, ops::neg(s, ops::mul(s, w_scale, parts)));
    }
  }
  set_dy(r, math, of_dy);
  if (of_x.valid()) math.set(kGradX, ops::mul(s, w, of_x));
}

// dx = scale w dy, dscale = sum(dy (x - m)) w, doffset = sum(dy).
void infer_norm_grad(RuleContext& r, const NormMath& math) {
  const Scope& s = r.scope();
  const Output dy = math.single(r.input(kGradDy));
  const Output from_mean =
      ops::sub(s, math.single(r.input(kGradX)), math.row(r.input(kGradMean)));
  const Output scale = math.row(r.input(kGradScale));
  const Output w = math.inverse_deviation(math.row(r.input(kGradVariance)));
  Output of_dy, of_w;
  if (r.has_grad(2)) of_dy = math.row(r.grad(2));
  if (r.has_grad(1)) {
    const Output b = math.row(r.grad(1));
    const Output b_w = ops::mul(s, b, w);
    of_dy = math.plus(of_dy, ops::mul(s, b_w, from_mean));
    math.set(kGradX, ops::mul(s, b_w, dy));
    math.set_vector(kGradMean, ops::neg(s, ops::mul(s, b_w, math.sum(dy))));
    of_w = ops::mul(s, b, math.sum(ops::mul(s, dy, from_mean)));
  }
  if (r.has_grad(0)) {
    const Output a = math.single(r.grad(0));
    const Output common = math.sum(ops::mul(s, a, dy));
    of_dy = math.plus(of_dy, ops::mul(s, a, ops::mul(s, scale, w)));
    math.set_vector(kGradScale, ops::mul(s, common, w));
    of_w = math.plus(of_w, ops::mul(s, scale, common));
  }
  set_dy(r, math, of_dy);
  // dw / dv = -w^3 / 2.
  if (!of_w.valid() || !r.wants(kGradVariance)) return;
  const Output slope = ops::mul(s, ops::mul(s, w, ops::square(s, w)), -0.5);
  math.set_vector(kGradVariance, ops::mul(s, of_w, slope));
}

void batch_norm_grad_rule(RuleContext& r) {
  const NormMath math(r);
  if (r.attr<bool>("is_training"))
    train_norm_grad(r, math);
  else
    infer_norm_grad(r, math);
}

}  // namespace

void add_batch_norm_grad_rules(RuleTable& table) {
  table.add(
      {"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"},
      batch_norm_grad_rule);
}

}  // namespace tagflow::autodiff
