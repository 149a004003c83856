// Random ops whose samples depend on a parameter for fixed random numbers, and
// shuffles.
#include "autodiff/rule.h"
#include "autodiff/rules/array_helpers.h"
#include "autodiff/rules/broadcast.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {
namespace {

// Where the distribution function F(x; alpha) stays the same, dx is
// -(dF / dalpha) / (dF / dx) dalpha (Figurnov, Mohamed and Mnih: "Implicit
// reparameterization gradients", 2018), which RandomGammaGrad gives.
void gamma_rule(RuleContext& r, int input) {
  const Scope& s = r.scope();
  Output alpha = r.input(input), sample = r.output();
  const bool is_half = r.input_dtype(input) == DataType::kHalf;
  if (is_half) alpha = ops::cast(s, alpha, DataType::kFloat);
  if (is_half) sample = ops::cast(s, sample, DataType::kFloat);
  Output slope = s.op("RandomGammaGrad", {alpha, sample});
  if (is_half) slope = ops::cast(s, slope, DataType::kHalf);
  r.set(input, sum_to_shape(s, ops::mul(s, r.grad(), slope),
                            r.input_shape(input), r.output_shape()));
}

// --- Truncated normal numbers -----------------------------------------------

// The distribution function of the standard normal distribution.
Output normal_cdf(const Scope& s, const Output& x) {
  return ops::mul(s, s.op("Erfc", {ops::mul(s, x, -0.70710678118654752440)}),
                  0.5);
}

// exp((z^2 - bound^2) / 2), the ratio of densities.
Output density_ratio(const Scope& s, const Output& bound, const Output& z) {
  const Output squares = ops::sub(s, ops::square(s, z), ops::square(s, bound));
  return ops::exp(s, ops::mul(s, squares, 0.5));
}

// x = mean + stddev z lies between two limits, a and b in units of the standard
// normal distribution. The random number is u, with
//
//   cdf(z) = (1 - u) cdf(a) + u cdf(b)
//   dz = (1 - u) p(a) / p(z) da + u p(b) / p(z) db
//
// where p is the density. `shapes` are the parameters' shapes for broadcasting
// to the samples.
void truncated_rule(RuleContext& r, int first,
                    const std::vector<Output>& shapes) {
  const Scope& s = r.scope();
  std::vector<Output> parameters;
  for (int i = 0; i < 4; ++i)
    parameters.push_back(
        ops::reshape(s, r.input(first + i), shapes[size_t(i)]));
  const Output& stddev = parameters[1];
  const auto standard = [&](const Output& x) {
    return ops::real_div(s, ops::sub(s, x, parameters[0]), stddev);
  };
  const Output z = standard(r.output());
  const Output a = standard(parameters[2]), b = standard(parameters[3]);
  // Near 1 the function loses digits, so limits above 0 are mirrored.
  const Output is_high = ops::greater(s, a, 0);
  const auto cdf = [&](const Output& x) {
    return normal_cdf(s, ops::select(s, is_high, ops::neg(s, x), x));
  };
  const Output below = cdf(a);
  const Output u =
      ops::real_div(s, ops::sub(s, cdf(z), below), ops::sub(s, cdf(b), below));
  const Output by_low = ops::mul(s, ops::sub(s, 1, u), density_ratio(s, a, z));
  const Output by_high = ops::mul(s, u, density_ratio(s, b, z));
  // A limit may be infinite; then its part is 0.
  const Output moved = ops::add(s, s.op("MulNoNan", {a, by_low}),
                                s.op("MulNoNan", {b, by_high}));
  const Output slopes[] = {ops::sub(s, 1, ops::add(s, by_low, by_high)),
                           ops::sub(s, z, moved), by_low, by_high};
  for (int i = 0; i < 4; ++i) {
    if (!r.wants(first + i)) continue;
    const Output grad = ops::mul(s, r.grad(), slopes[i]);
    const Output sum =
        sum_to_shape(s, grad, shapes[size_t(i)], r.output_shape());
    r.set(first + i, ops::reshape(s, sum, r.input_shape(first + i)));
  }
}

// Parameters per row of the output: scalars, or vectors along dimension 0.
void truncated_rows_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const Output rank = ops::size(s, r.output_shape());
  const Output rest =
      ops::fill(s, ops::reshape(s, ops::sub(s, rank, 1), {1}), 1);
  std::vector<Output> shapes;
  for (int i = 1; i <= 4; ++i) {
    const Output count =
        ops::reduce_prod(s, r.input_shape(i), {0}, {.keep_dims = true});
    shapes.push_back(ops::concat(s, {count, rest}, 0));
  }
  truncated_rule(r, 1, shapes);
}

// The same key and counter shuffle the row numbers in the same way.
void shuffle_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const PartialShape& known = r.known_input_shape(0);
  if (known.has_rank() && known.rank() == 0) return r.set(0, r.grad());
  const Output rows = count_to(s, ops::gather(s, r.input_shape(0), 0));
  const Output order =
      s.op("StatelessShuffle", {rows, r.input(1), r.input(2), r.input(3)});
  r.set(0, ops::gather(s, r.grad(), ops::invert_permutation(s, order)));
}

void add_random_reasons(RuleTable& table) {
  no_gradient(
      table,
      "NonDeterministicInts RandomStandardNormal RandomUniform "
      "RandomUniformInt RngReadAndSkip RngSkip StatefulStandardNormalV2 "
      "StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt "
      "StatefulUniformInt StatelessRandomGetAlg "
      "StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg "
      "StatelessRandomNormal StatelessRandomNormalV2 "
      "StatelessRandomUniform StatelessRandomUniformFullInt "
      "StatelessRandomUniformFullIntV2 StatelessRandomUniformInt "
      "StatelessRandomUniformIntV2 StatelessRandomUniformV2 "
      "StatelessTruncatedNormal StatelessTruncatedNormalV2 "
      "TruncatedNormal",
      "what it draws depends on integers alone");
  no_gradient(
      table,
      "Multinomial RandomPoisson RandomPoissonV2 StatefulRandomBinomial "
      "StatelessMultinomial StatelessRandomBinomial "
      "StatelessRandomPoisson",
      "its samples are whole numbers");
  no_gradient(table,
              "AllCandidateSampler ComputeAccidentalHits "
              "FixedUnigramCandidateSampler LogUniformCandidateSampler "
              "UniformCandidateSampler",
              "what it draws depends on integers alone");
}

}  // namespace

void add_random_rules(RuleTable& table) {
  table.add("RandomGamma", [](RuleContext& r) { gamma_rule(r, 1); });
  table.add("StatelessRandomGammaV2", [](RuleContext& r) { gamma_rule(r, 2); });
  table.add("StatelessRandomGammaV3", [](RuleContext& r) { gamma_rule(r, 4); });
  table.add("ParameterizedTruncatedNormal", truncated_rows_rule);
  table.add("StatelessParameterizedTruncatedNormal", [](RuleContext& r) {
    std::vector<Output> shapes;
    for (int i = 2; i <= 5; ++i) shapes.push_back(r.input_shape(i));
    truncated_rule(r, 2, shapes);
  });
  table.add("StatelessShuffle", shuffle_rule);
  table.add("RandomShuffle", [](RuleContext& r) {
    r.fail("the order that it has drawn is none of its outputs");
  });
  add_random_reasons(table);
}

}  // namespace tagflow::autodiff
