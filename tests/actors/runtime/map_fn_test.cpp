// map_fn, scan, foldl and foldr at run time, compared with plain C++.
#include <doctest/doctest.h>

#include <numeric>

#include "tests/actors/program.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// A subtraction and a product, so that order matters.
Output mix(const Scope& in, const Output& a, const Output& x) {
  return ops::sub(in, ops::mul(in, a, 2), x);
}
int mixed(int a, int x) { return 2 * a - x; }

std::vector<int> first_numbers(int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

Tensor vector_of(const std::vector<int>& values) {
  return Tensor::of<int>({int64_t(values.size())},
                         std::span<const int>(values));
}

struct Pair {
  Output a, b;
  TAGFLOW_FIELDS(a, b)
};

}  // namespace

TEST_CASE("map_fn applies a function to every element") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, {-1});
  const Output y = map_fn(
      p.s, [](const Scope& in, Output v) { return ops::square(in, v); }, x);
  for (const int count : {0, 1, 2, 7, 100}) {
    CAPTURE(count);
    std::vector<int> expected = first_numbers(count);
    const Tensor fed = vector_of(expected);
    for (int& value : expected) value *= value;
    for (const int window : {1, 10}) {
      SessionOptions options;
      options.window = window;
      CHECK(elements<int>(p.run({{"x", fed}}, y, options)[0]) == expected);
    }
  }
}

TEST_CASE("map_fn takes several inputs and returns structures of any types") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, {-1});
  const Output y = p.input("y", DataType::kFloat, {-1, 2});
  struct Result {
    Output sum;
    std::vector<Output> rest;
    TAGFLOW_FIELDS(sum, rest)
  };
  const Result r = map_fn(
      p.s,
      [](const Scope& in, const Pair& v) {
        const Output sum = ops::reduce_sum(in, v.b);
        const Output a = ops::cast(in, v.a, DataType::kFloat);
        return Result{ops::add(in, sum, a),
                      {v.b, ops::greater(in, v.a, 1), ops::constant(in, 7)}};
      },
      Pair{x, y});
  CHECK(r.rest[0].shape() == PartialShape{-1, 2});
  const auto results = p.run({{"x", Tensor::vector<int>({1, 2})},
                              {"y", Tensor::of<float>({2, 2}, {1, 2, 3, 4})}},
                             {r.sum, r.rest[0], r.rest[1], r.rest[2]});
  CHECK(elements<float>(results[0]) == std::vector<float>{4, 9});
  CHECK(elements<float>(results[1]) == std::vector<float>{1, 2, 3, 4});
  CHECK(elements<bool>(results[2]) == std::vector<bool>{false, true});
  CHECK(elements<int>(results[3]) == std::vector<int>{7, 7});
}

TEST_CASE("scan, foldl and foldr go through the elements in order") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, {-1});
  const Output start =
      p.input("start", DataType::kInt32, PartialShape::scalar());
  const auto fn = [](const Scope& in, Output a, Output v) {
    return mix(in, a, v);
  };
  const Outputs fetches = {scan(p.s, fn, x),
                           scan(p.s, fn, x, start),
                           scan(p.s, fn, x, {.reverse = true}),
                           scan(p.s, fn, x, start, {.reverse = true}),
                           foldl(p.s, fn, x),
                           foldl(p.s, fn, x, start),
                           foldr(p.s, fn, x),
                           foldr(p.s, fn, x, start)};
  for (const int count : {1, 2, 9}) {
    CAPTURE(count);
    const std::vector<int> values = first_numbers(count);
    const auto results = p.run(
        {{"x", vector_of(values)}, {"start", Tensor::scalar(3)}}, fetches);
    // All accumulators of a walk over `order`, by the place of the element.
    const auto walk = [&](bool reverse, bool with_start) {
      std::vector<int> all(values.size());
      int a = 3;
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t at = reverse ? values.size() - 1 - i : i;
        a = i == 0 && !with_start ? values[at] : mixed(a, values[at]);
        all[at] = a;
      }
      return all;
    };
    CHECK(elements<int>(results[0]) == walk(false, false));
    CHECK(elements<int>(results[1]) == walk(false, true));
    CHECK(elements<int>(results[2]) == walk(true, false));
    CHECK(elements<int>(results[3]) == walk(true, true));
    CHECK(results[4].scalar_value<int>() == walk(false, false).back());
    CHECK(results[5].scalar_value<int>() == walk(false, true).back());
    CHECK(results[6].scalar_value<int>() == walk(true, false).front());
    CHECK(results[7].scalar_value<int>() == walk(true, true).front());
  }
}

TEST_CASE("foldl, foldr and scan may have no elements") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, {-1});
  const auto fn = [](const Scope& in, Output a, Output v) {
    return mix(in, a, v);
  };
  const Output start = ops::constant(p.s, 3);
  const std::vector<Feed> none = {{"x", vector_of({})}};
  CHECK(p.run(none, foldl(p.s, fn, x, start))[0].scalar_value<int>() == 3);
  CHECK(p.run(none, foldr(p.s, fn, x, start))[0].scalar_value<int>() == 3);
  CHECK(p.run(none, scan(p.s, fn, x, start))[0].num_elements() == 0);
  // Without a start there is nothing to return.
  const std::string text = p.error(none, foldl(p.s, fn, x));
  CAPTURE(text);
  CHECK(text.find("index 0") != std::string::npos);
}

TEST_CASE("scan takes structures as accumulators and elements") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, {-1});
  const Output y = p.input("y", DataType::kInt32, {-1});
  const Pair all = scan(
      p.s,
      [](const Scope& in, const Pair& a, const std::pair<Output, Output>& v) {
        return Pair{ops::add(in, a.a, v.first), ops::mul(in, a.b, v.second)};
      },
      std::pair(x, y), Pair{ops::constant(p.s, 0), ops::constant(p.s, 1)});
  const auto results =
      p.run({{"x", vector_of({1, 2, 3})}, {"y", vector_of({2, 3, 4})}},
            {all.a, all.b});
  CHECK(elements<int>(results[0]) == std::vector<int>{1, 3, 6});
  CHECK(elements<int>(results[1]) == std::vector<int>{2, 6, 24});
}

TEST_CASE("map_fn nests in map_fn, in a loop and in a conditional") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, {-1, -1});
  const Output yes = p.input("yes", DataType::kBool, PartialShape::scalar());
  const auto twice = [](const Scope& in, Output v) {
    return ops::mul(in, v, 2);
  };
  const Output nested = map_fn(
      p.s,
      [&](const Scope& in, Output row) {
        return ops::add(in, map_fn(in, twice, row), foldl(in, mix, row));
      },
      x);
  const Output in_loop =
      while_loop(
          p.s,
          [](const Scope& in, const std::pair<Output, Output>& v) {
            return ops::less(in, v.first, 3);
          },
          [&](const Scope& in, const std::pair<Output, Output>& v) {
            return std::pair(ops::add(in, v.first, 1),
                             map_fn(in, twice, v.second));
          },
          std::pair(ops::constant(p.s, 0), ops::reshape(p.s, x, {-1})))
          .second;
  const Output in_cond = cond(
      p.s, yes,
      [&](const Scope& in) {
        return map_fn(in, twice, ops::reshape(in, x, {-1}));
      },
      [&](const Scope& in) { return ops::reshape(in, x, {-1}); })[0];
  const Tensor fed = Tensor::of<int>({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const bool value : {true, false}) {
    const auto results = p.run({{"x", fed}, {"yes", Tensor::scalar(value)}},
                               {nested, in_loop, in_cond});
    const int a = mixed(mixed(1, 2), 3), b = mixed(mixed(4, 5), 6);
    CHECK(elements<int>(results[0]) ==
          std::vector<int>{2 + a, 4 + a, 6 + a, 8 + b, 10 + b, 12 + b});
    CHECK(elements<int>(results[1]) == std::vector<int>{8, 16, 24, 32, 40, 48});
    CHECK(elements<int>(results[2]) ==
          (value ? std::vector<int>{2, 4, 6, 8, 10, 12}
                 : std::vector<int>{1, 2, 3, 4, 5, 6}));
  }
}

TEST_CASE("map_fn refuses inputs of different lengths when it runs") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, {-1});
  const Output y = p.input("y", DataType::kInt32, {-1});
  const Output sum = map_fn(
      p.s.named("sums"),
      [](const Scope& in, const Pair& v) { return ops::add(in, v.a, v.b); },
      Pair{x, y});
  CHECK(elements<int>(p.run(
            {{"x", vector_of({1, 2})}, {"y", vector_of({3, 4})}}, sum)[0]) ==
        std::vector<int>{4, 6});
  CHECK(p.error({{"x", vector_of({1, 2})}, {"y", vector_of({3})}}, sum) ==
        "[Assert] assertion failed: [[map_fn] sums: inputs differ in "
        "length:] [2] [2 1] (node \"sums/lengths\", device /device:CPU:0)");
}
