// The distributions of the numbers of random ops. The seeds are fixed, and with
// them all results: a bound of five deviations says how likely a correct
// generator would miss it, not how often the test fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "graph/dtype_visit.h"
#include "tests/devices/parts_parallel.h"
#include "tests/devices/random_node.h"

namespace tagflow::devices {
namespace {

using Cdf = std::function<double(double)>;

std::vector<double> as_doubles(const Tensor& tensor) {
  std::vector<double> values;
  visit_real(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T value : tensor.flat<T>()) values.push_back(double(value));
  });
  return values;
}

std::vector<double> draw(const std::string& op, std::vector<Tensor> inputs,
                         AttrMap attrs = {}, int64_t iteration = 0) {
  attrs["seed"] = int64_t{42};
  RandomNode node(op, std::move(inputs), std::move(attrs));
  return as_doubles(node.draw({}, {0, 0, iteration}));
}

Tensor size_of(int32_t count) { return Tensor::vector<int32_t>({count}); }

// Kolmogorov and Smirnov: 1.95 is exceeded by one sample in a thousand.
void check_cdf(std::vector<double> values, const Cdf& cdf) {
  std::ranges::sort(values);
  const auto count = double(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double wanted = cdf(values[i]);
    distance = std::max({distance, std::abs(wanted - double(i) / count),
                         std::abs(wanted - double(i + 1) / count)});
  }
  CHECK(distance * std::sqrt(count) < 1.95);
}

// Chi-squared: how often 0, 1, ... come, against their probabilities; the rest
// is one class, and so are those of which less than five are expected.
void check_frequencies(const std::vector<double>& values,
                       const std::vector<double>& probabilities) {
  const auto count = double(values.size());
  std::vector<double> found(probabilities.size() + 1);
  for (const double value : values)
    ++found[std::min(size_t(value), probabilities.size())];
  double sum = 0, rest = count, rest_found = count;
  int classes = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double wanted = probabilities[i] * count;
    if (wanted < 5) continue;
    sum += (found[i] - wanted) * (found[i] - wanted) / wanted;
    rest -= wanted;
    rest_found -= found[i];
    ++classes;
  }
  if (rest > 5) {
    sum += (rest_found - rest) * (rest_found - rest) / rest;
    ++classes;
  }
  const double freedom = classes - 1;
  CHECK(sum < freedom + 5 * std::sqrt(2 * freedom));
  // Too good is not random, either.
  if (freedom > 50) CHECK(sum > freedom - 5 * std::sqrt(2 * freedom));
}

void check_moments(const std::vector<double>& values, double mean,
                   double variance) {
  const auto count = double(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += (value - mean) * (value - mean);
  }
  CHECK(std::abs(sum / count - mean) < 5 * std::sqrt(variance / count));
  // The square of a normal number has twice its variance squared; of others we
  // test here, up to ten times that.
  CHECK(std::abs(squares / count - variance) <
        15 * variance * std::sqrt(1 / count));
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - 0.5) * (b[i] - 0.5);
  return sum / double(a.size()) * 12;
}

double normal_cdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value = std::floor(value * factor);
  return values;
}

std::vector<double> evenly(size_t classes) {
  return std::vector<double>(classes, 1 / double(classes));
}

const std::vector<DataType> kFloating = {DataType::kFloat, DataType::kDouble,
                                         DataType::kHalf, DataType::kBFloat16};

}  // namespace

TEST_CASE("uniform numbers are uniform in [0, 1)") {
  for (const DataType dtype : kFloating) {
    CAPTURE(dtype_name(dtype));
    const auto values =
        draw("RandomUniform", {size_of(40000)}, {{"dtype", dtype}});
    CHECK(
        std::ranges::all_of(values, [](double x) { return x >= 0 && x < 1; }));
    check_frequencies(scaled(values, 64), evenly(64));
    if (dtype == DataType::kFloat || dtype == DataType::kDouble)
      check_cdf(values, [](double x) { return x; });
  }
}

TEST_CASE("uniform integers are uniform between their limits") {
  auto values = draw("RandomUniformInt",
                     {size_of(40000), Tensor::scalar(0), Tensor::scalar(100)});
  check_frequencies(values, evenly(100));
  values =
      draw("RandomUniformInt", {size_of(40000), Tensor::scalar(int64_t{-50}),
                                Tensor::scalar(int64_t{3})});
  for (double& value : values) value += 50;
  check_frequencies(values, evenly(53));
  CHECK(std::ranges::min(values) == 0);
}

TEST_CASE("successive numbers, runs, tags and seeds are uncorrelated") {
  const int32_t count = 20000;
  const AttrMap attrs = {{"dtype", DataType::kDouble}};
  const auto first = draw("RandomUniform", {size_of(count)}, attrs);
  const double bound = 5 / std::sqrt(double(count));
  for (int lag : {1, 2, 3, 4, 64}) {
    std::vector<double> later(first.begin() + lag, first.end());
    CHECK(std::abs(correlation(later, first)) < bound);
  }
  for (int64_t iteration = 1; iteration < 10; ++iteration)
    CHECK(std::abs(correlation(
              draw("RandomUniform", {size_of(count)}, attrs, iteration),
              first)) < bound);
  RandomNode other("RandomUniform", {size_of(count)},
                   {{"dtype", DataType::kDouble}, {"seed", int64_t{43}}});
  CHECK(std::abs(correlation(as_doubles(other.draw()), first)) < bound);
  FixedRuns runs(1);
  StepInfo step;
  step.random_runs = &runs;
  RandomNode same("RandomUniform", {size_of(count)},
                  {{"dtype", DataType::kDouble}, {"seed", int64_t{42}}});
  CHECK(std::abs(correlation(as_doubles(same.draw(step)), first)) < bound);
  CHECK(as_doubles(same.draw()) == first);
}

TEST_CASE("normal numbers are normal") {
  for (const DataType dtype : kFloating) {
    CAPTURE(dtype_name(dtype));
    const auto values =
        draw("RandomStandardNormal", {size_of(40000)}, {{"dtype", dtype}});
    check_moments(values, 0, 1);
    if (dtype == DataType::kFloat || dtype == DataType::kDouble)
      check_cdf(values, normal_cdf);
  }
}

TEST_CASE("truncated normal numbers are normal within two deviations") {
  for (const DataType dtype : kFloating) {
    CAPTURE(dtype_name(dtype));
    const auto values =
        draw("TruncatedNormal", {size_of(40000)}, {{"dtype", dtype}});
    CHECK(
        std::ranges::all_of(values, [](double x) { return std::abs(x) <= 2; }));
    check_moments(values, 0, 0.7737);
    const double below = normal_cdf(-2);
    if (dtype == DataType::kFloat || dtype == DataType::kDouble)
      check_cdf(values, [&](double x) {
        return (normal_cdf(x) - below) / (1 - 2 * below);
      });
  }
}

TEST_CASE("normal numbers between any bounds have that distribution") {
  const double infinity = std::numeric_limits<double>::infinity();
  struct Bounds {
    double mean, deviation, low, high;
  };
  for (const auto& [mean, deviation, low, high] :
       std::vector<Bounds>{{0, 1, -2, 2},
                           {3, 2, -infinity, 1},
                           {3, 2, 1, infinity},
                           {0, 1, -0.5, 0.7},
                           {0, 1, -0.1, 3},
                           {0, 1, 2, 2.1},
                           {0, 1, 4, 9},
                           {0, 1, -9, -4},
                           {0, 1, 30, infinity},
                           {-5, 0.1, -infinity, -5.5}}) {
    CAPTURE(low);
    CAPTURE(high);
    const auto values =
        draw("ParameterizedTruncatedNormal",
             {size_of(20000), Tensor::scalar(mean), Tensor::scalar(deviation),
              Tensor::scalar(low), Tensor::scalar(high)});
    CHECK(std::ranges::min(values) >= low);
    CHECK(std::ranges::max(values) <= high);
    // By the tail on the side of the bounds, whose digits are exact.
    const double sign = low >= mean ? -1 : 1;
    const auto tail = [&, m = mean, d = deviation](double x) {
      return normal_cdf(sign * (x - m) / d);
    };
    const double from = tail(low), to = tail(high);
    check_cdf(values, [&](double x) { return (tail(x) - from) / (to - from); });
  }
}

TEST_CASE("ParameterizedTruncatedNormal takes bounds as far as can be") {
  const double huge = std::numeric_limits<double>::max();
  for (const double low : {1e30, 1e200, huge / 2}) {
    const auto values =
        draw("ParameterizedTruncatedNormal",
             {size_of(50), Tensor::scalar(-huge), Tensor::scalar(1e-300),
              Tensor::scalar(low), Tensor::scalar(huge)});
    for (const double value : values) CHECK(value == low);
  }
}

TEST_CASE("gamma numbers are distributed by their alpha") {
  const std::map<double, Cdf> cdfs = {
      {0.5, [](double x) { return std::erf(std::sqrt(x)); }},
      {1, [](double x) { return 1 - std::exp(-x); }},
      {2, [](double x) { return 1 - (1 + x) * std::exp(-x); }},
      {3, [](double x) { return 1 - (1 + x + x * x / 2) * std::exp(-x); }}};
  for (const auto& [alpha, cdf] : cdfs) {
    CAPTURE(alpha);
    check_cdf(draw("RandomGamma", {size_of(20000), Tensor::scalar(alpha)}),
              cdf);
  }
  for (const float alpha : {0.1f, 0.9f, 17.0f, 2000.0f})
    check_moments(draw("RandomGamma", {size_of(40000), Tensor::scalar(alpha)}),
                  alpha, alpha);
}

TEST_CASE("Poisson numbers are distributed by their rate") {
  for (const double rate : {0.5, 4.0, 9.9, 10.0, 35.0, 900.0}) {
    CAPTURE(rate);
    std::vector<double> probabilities;
    for (int k = 0; k < int(rate + 10 * std::sqrt(rate) + 10); ++k)
      probabilities.push_back(
          std::exp(k * std::log(rate) - rate - std::lgamma(k + 1.0)));
    check_frequencies(
        draw("RandomPoissonV2", {size_of(40000), Tensor::scalar(rate)}),
        probabilities);
  }
}

TEST_CASE("binomial numbers are distributed by count and probability") {
  for (const auto& [count, chance] : std::vector<std::pair<double, double>>{
           {1, 0.3}, {20, 0.1}, {20, 0.5}, {60, 0.4}, {60, 0.9}, {2000, 0.3}}) {
    CAPTURE(count);
    CAPTURE(chance);
    std::vector<double> probabilities;
    for (int k = 0; k <= int(count); ++k)
      probabilities.push_back(
          std::exp(std::lgamma(count + 1) - std::lgamma(k + 1.0) -
                   std::lgamma(count - k + 1) + k * std::log(chance) +
                   (count - k) * std::log1p(-chance)));
    RandomNode node("StatelessRandomBinomial",
                    {size_of(40000), Tensor::vector<int32_t>({4, 2}),
                     Tensor::scalar(count), Tensor::scalar(chance)});
    check_frequencies(as_doubles(node.draw()), probabilities);
  }
}

TEST_CASE("Multinomial draws classes by their logits") {
  std::vector<double> probabilities(20);
  Tensor logits = Tensor::make(DataType::kDouble, {2, 20});
  double sum = 0;
  for (size_t i = 0; i < 20; ++i) {
    const double logit = 0.3 * double(i % 7) - 700;
    logits.mutable_flat<double>()[i] = logit;
    logits.mutable_flat<double>()[20 + i] = logit;
    probabilities[i] = std::exp(logit + 700);
    sum += probabilities[i];
  }
  for (double& probability : probabilities) probability /= sum;
  const auto values = draw("Multinomial", {logits, Tensor::scalar(20000)});
  check_frequencies({values.begin(), values.begin() + 20000}, probabilities);
  check_frequencies({values.begin() + 20000, values.end()}, probabilities);
}

TEST_CASE("each order of a shuffle is as likely as any other") {
  RandomNode node("RandomShuffle", {Tensor::vector<int32_t>({0, 1, 2, 3})});
  std::map<std::vector<double>, double> numbers;
  std::vector<double> orders;
  for (int64_t i = 0; i < 12000; ++i) {
    const auto order = as_doubles(node.draw({}, {0, 1, i}));
    orders.push_back(
        numbers.emplace(order, double(numbers.size())).first->second);
  }
  CHECK(numbers.size() == 24);
  check_frequencies(orders, evenly(24));
}

TEST_CASE("a large shuffle keeps every row") {
  Tensor value = Tensor::make(DataType::kInt64, {5000, 2});
  std::iota(value.mutable_data<int64_t>(),
            value.mutable_data<int64_t>() + 10000, 0);
  const Tensor output =
      RandomNode("RandomShuffle", {value}, {{"seed", int64_t{1}}}).draw();
  std::vector<bool> seen(5000);
  int moved = 0;
  for (size_t row = 0; row < 5000; ++row) {
    const int64_t first = output.flat<int64_t>()[2 * row];
    CHECK(output.flat<int64_t>()[2 * row + 1] == first + 1);
    seen[size_t(first / 2)] = true;
    moved += size_t(first / 2) != row;
  }
  CHECK(std::ranges::find(seen, false) == seen.end());
  CHECK(moved > 4980);
}

TEST_CASE("random draws do not depend on how they are split into parts") {
  const Tensor shape = Tensor::vector<int32_t>({3, 67});
  const AttrMap attrs = {{"dtype", DataType::kFloat}};
  const Tensor two = Tensor::vector<float>({0.5f, 20.0f});
  std::vector<std::unique_ptr<RandomNode>> nodes;
  const auto add = [&](const char* op, std::vector<Tensor> inputs,
                       AttrMap given = {}) {
    nodes.push_back(
        std::make_unique<RandomNode>(op, std::move(inputs), std::move(given)));
  };
  for (const char* op :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"})
    for (const DataType dtype : kFloating) add(op, {shape}, {{"dtype", dtype}});
  add("RandomUniformInt", {shape, Tensor::scalar(0), Tensor::scalar(9)});
  add("ParameterizedTruncatedNormal",
      {shape, Tensor::scalar(0.f), Tensor::vector<float>({1, 2, 3}),
       Tensor::scalar(-1.f), Tensor::scalar(5.f)});
  add("RandomGamma", {shape, two});
  add("RandomPoisson", {shape, two});
  add("RandomPoissonV2", {shape, two}, {{"dtype", DataType::kInt32}});
  add("Multinomial",
      {Tensor::of<float>({3, 2}, {1, 2, 0, 0, -1, 1}), Tensor::scalar(31)});
  add("RandomShuffle", {RandomNode("RandomUniform", {shape}, attrs).draw()});
  for (const auto& node : nodes) {
    CAPTURE(node->node().op());
    const Tensor whole = node->draw();
    for (const int64_t part : {1, 2, 7, 1000}) {
      PartsParallel parallel(part);
      StepInfo step;
      step.parallel = &parallel;
      CHECK(identical(node->draw(step), whole));
    }
    CHECK(identical(node->draw(), whole));
    CHECK_FALSE(identical(node->draw({}, {0, 0, 1}), whole));
  }
}

}  // namespace tagflow::devices
