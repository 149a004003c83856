// Losses against closed forms, and their gradients.
#include "autodiff/train/loss.h"

#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/gradient_check.h"
#include "tests/autodiff/train/trainer.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT
using losses::Reduction;

namespace {

using Loss = Output (*)(const Scope&, const Output&, const Input&, Reduction);

Output huber_of_two(const Scope& s, const Output& x, const Input& z,
                    Reduction reduction) {
  return losses::huber(s, x, z, 2, reduction);
}

// By element: the loss of a prediction x and a label z.
struct Case {
  const char* name;
  Loss loss;
  double (*formula)(double x, double z);
};

const Case kCases[] = {
    {"squared", losses::mean_squared_error,
     [](double x, double z) { return (x - z) * (x - z); }},
    {"sigmoid", losses::sigmoid_cross_entropy,
     [](double x, double z) {
       const double p = 1 / (1 + std::exp(-x));
       return -z * std::log(p) - (1 - z) * std::log(1 - p);
     }},
    {"huber", huber_of_two,
     [](double x, double z) {
       const double e = std::abs(x - z);
       return e <= 2 ? e * e / 2 : 2 * (e - 1);
     }},
    {"hinge", losses::hinge,
     [](double x, double z) { return std::max(0.0, 1 - x * (2 * z - 1)); }},
};

const Doubles kLogits{-3, -0.4, 0.3, 2.5, 0.8, -1.2};
const Doubles kLabels{1, 0, 1, 0, 1, 0};

Tensor matrix(const Doubles& values) {
  return Tensor::of<double>({2, 3}, std::span<const double>(values));
}

struct Fixture {
  Graph graph;
  Scope s{graph};
  const Output x = ops::constant(s, matrix(kLogits));
  const Output z = ops::constant(s, matrix(kLabels));

  Doubles value(const Output& tensor) {
    return doubles_of(evaluate(s, {tensor})[0]);
  }
};

double sum(const Doubles& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

// Of rows of three logits.
Doubles log_softmax(const Doubles& logits) {
  Doubles all;
  for (size_t row = 0; row < logits.size(); row += 3) {
    double total = 0;
    for (size_t i = 0; i < 3; ++i) total += std::exp(logits[row + i]);
    for (size_t i = 0; i < 3; ++i)
      all.push_back(logits[row + i] - std::log(total));
  }
  return all;
}

}  // namespace

TEST_CASE("losses of elements are those of the formulas, by each reduction") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    Fixture f;
    Doubles wanted;
    for (size_t i = 0; i < kLogits.size(); ++i)
      wanted.push_back(c.formula(kLogits[i], kLabels[i]));
    const Output single = c.loss(f.s, f.x, f.z, Reduction::kNone);
    CHECK(single.shape() == PartialShape{2, 3});
    check_close(f.value(single), wanted);
    check_close(f.value(c.loss(f.s, f.x, f.z, Reduction::kSum)), {sum(wanted)});
    check_close(f.value(c.loss(f.s, f.x, f.z, Reduction::kMean)),
                {sum(wanted) / 6});
  }
}

TEST_CASE("losses of elements have the gradients that differences say") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    check_gradients(
        [&](const Scope& s, const Outputs& x) -> Outputs {
          return c.loss(s, x[0], ops::constant(s, matrix(kLabels)),
                        Reduction::kMean);
        },
        {matrix(kLogits)});
  }
}

TEST_CASE_FIXTURE(Fixture, "a cross entropy of sigmoids holds far out") {
  const Output far = ops::constant(s, Tensor::vector<double>({800, -800, 30}));
  const Output labels = ops::constant(s, Tensor::vector<double>({0, 1, 1}));
  const Output loss =
      losses::sigmoid_cross_entropy(s, far, labels, Reduction::kNone);
  const Doubles found = value(loss);
  check_close({found[0], found[1]}, {800, 800});
  CHECK(found[2] == doctest::Approx(std::exp(-30)).epsilon(1e-9));
  check_close(value(dense_gradients(s, {loss}, {far})[0]),
              {1, -1, -std::exp(-30)});
}

TEST_CASE_FIXTURE(
    Fixture, "sigmoid cross entropy has the right slope at a logit of zero") {
  const Output zero = ops::constant(s, Tensor::vector<double>({0, 0}));
  const Output loss = losses::sigmoid_cross_entropy(
      s, zero, ops::constant(s, Tensor::vector<double>({0, 1})),
      Reduction::kSum);
  const Output first = dense_gradients(s, {loss}, {zero})[0];
  check_close(value(first), {0.5, -0.5});
  check_close(value(dense_gradients(s, {first}, {zero})[0]), {0.25, 0.25});
}

TEST_CASE_FIXTURE(Fixture, "a cross entropy takes a distribution or an index") {
  const Doubles logs = log_softmax(kLogits);
  const Doubles shares{0.2, 0.5, 0.3, 0, 1, 0};
  Doubles by_share(2), by_index{-logs[2], -logs[3]};
  for (size_t i = 0; i < 6; ++i) by_share[i / 3] -= shares[i] * logs[i];
  const Output labels = ops::constant(s, matrix(shares));
  const Output indices = ops::constant(s, Tensor::vector<int32_t>({2, 0}));
  check_close(
      value(losses::softmax_cross_entropy(s, x, labels, Reduction::kNone)),
      by_share);
  check_close(value(losses::softmax_cross_entropy(s, x, labels)),
              {sum(by_share) / 2});
  check_close(value(losses::sparse_softmax_cross_entropy(s, x, indices,
                                                         Reduction::kNone)),
              by_index);
  check_close(value(losses::sparse_softmax_cross_entropy(s, x, indices,
                                                         Reduction::kSum)),
              {sum(by_index)});
}

TEST_CASE_FIXTURE(Fixture, "logits may have any number of dimensions") {
  const Doubles logs = log_softmax(kLogits);
  const Output deep = ops::reshape(s, x, {1, 2, 1, 3});
  const Output indices =
      ops::constant(s, Tensor::of<int64_t>({1, 2, 1}, {1, 2}));
  const Output sparse =
      losses::sparse_softmax_cross_entropy(s, deep, indices, Reduction::kNone);
  const Tensor found = evaluate(s, {sparse})[0];
  CHECK(found.shape() == Shape{1, 2, 1});
  check_close(doubles_of(found), {-logs[1], -logs[5]});
  const Output dense = losses::softmax_cross_entropy(
      s, deep, ops::one_hot(s, indices, 3, 1.0, 0.0), Reduction::kNone);
  check_close(doubles_of(evaluate(s, {dense})[0]), {-logs[1], -logs[5]});
}

TEST_CASE_FIXTURE(Fixture, "labels are numbers of any type") {
  const Output labels =
      ops::constant(s, Tensor::of<int32_t>({2, 3}, {1, 0, 1, 0, 1, 0}));
  check_close(value(losses::hinge(s, x, labels)),
              value(losses::hinge(s, x, z)));
}

TEST_CASE_FIXTURE(Fixture, "a loss says why it refuses its inputs") {
  const auto contains = [&](const char* text) {
    return s.status().to_string().find(text) != std::string::npos;
  };
  SUBCASE("labels of another shape") {
    losses::mean_squared_error(
        s, x, ops::constant(s, Tensor::vector<double>({1, 2, 3})));
    CHECK(
        contains("labels of shape [3] do not fit predictions of shape [2,3]"));
  }
  SUBCASE("a delta of zero") {
    losses::huber(s, x, z, 0);
    CHECK(contains("delta 0 is not positive"));
  }
}
