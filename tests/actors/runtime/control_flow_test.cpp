// The builder's conditionals, cases and checks at run time.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/actors/program.h"
#include "tests/temp_path.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

BranchFn number(int value) {
  return [value](const Scope& in) { return ops::constant(in, value); };
}

struct Pair {
  Output a, b;
  TAGFLOW_FIELDS(a, b)
};

}  // namespace

TEST_CASE("a structure goes through a loop, by name") {
  struct State {
    Output i;
    Pair fibonacci;
    std::vector<Output> powers;
    TAGFLOW_FIELDS(i, fibonacci, powers)
  };
  Program p;
  const Output n = p.input("n", DataType::kInt32, PartialShape::scalar());
  const Output one = ops::constant(p.s, 1);
  const State last = while_loop(
      p.s,
      [&](const Scope& in, const State& v) { return ops::less(in, v.i, n); },
      [](const Scope& in, State v) {
        v.i = ops::add(in, v.i, 1);
        v.fibonacci = {v.fibonacci.b,
                       ops::add(in, v.fibonacci.a, v.fibonacci.b)};
        for (size_t k = 0; k < v.powers.size(); ++k)
          v.powers[k] = ops::mul(in, v.powers[k], k + 2);
        return v;
      },
      State{ops::constant(p.s, 0), {one, one}, {one, one}});
  const auto results =
      p.run({{"n", Tensor::scalar(10)}},
            {last.i, last.fibonacci.a, last.powers[0], last.powers[1]});
  CHECK(results[0].scalar_value<int>() == 10);
  CHECK(results[1].scalar_value<int>() == 89);
  CHECK(results[2].scalar_value<int>() == 1024);
  CHECK(results[3].scalar_value<int>() == 59049);
}

TEST_CASE("a structure comes out of a conditional in a loop") {
  Program p;
  const Output n = p.input("n", DataType::kInt32, PartialShape::scalar());
  // Counts even and odd numbers below n.
  const auto last = while_loop(
      p.s,
      [&](const Scope& in, const std::pair<Output, Pair>& v) {
        return ops::less(in, v.first, n);
      },
      [](const Scope& in, std::pair<Output, Pair> v) {
        v.second = cond(
            in, ops::equal(in, ops::floor_mod(in, v.first, 2), 0),
            [&](const Scope& t) {
              return Pair{ops::add(t, v.second.a, 1), v.second.b};
            },
            [&](const Scope& f) {
              return Pair{v.second.a, ops::add(f, v.second.b, 1)};
            });
        v.first = ops::add(in, v.first, 1);
        return v;
      },
      std::pair(ops::constant(p.s, 0),
                Pair{ops::constant(p.s, 0), ops::constant(p.s, 0)}));
  const auto results =
      p.run({{"n", Tensor::scalar(7)}}, {last.second.a, last.second.b});
  CHECK(results[0].scalar_value<int>() == 4);
  CHECK(results[1].scalar_value<int>() == 3);
}

TEST_CASE("switch_case takes the branch of the number, else the default") {
  Program p;
  const Output i = p.input("i", DataType::kInt64, PartialShape::scalar());
  const std::vector<BranchFn> branches = {number(10), number(11), number(12)};
  const Outputs with_default = {
      switch_case(p.s, i, branches, number(99))[0],
      switch_case(p.s, i, branches)[0],
      switch_case<Pair>(
          p.s, i,
          {[](const Scope& in) {
             return Pair{ops::constant(in, 1), ops::constant(in, 2.f)};
           },
           [](const Scope& in) {
             return Pair{ops::constant(in, 3), ops::constant(in, 4.f)};
           }})
          .a};
  constexpr int64_t kFar = int64_t(1) << 40;
  for (const int64_t index :
       {int64_t(-5), int64_t(0), int64_t(1), int64_t(2), int64_t(3), kFar}) {
    CAPTURE(index);
    const auto results = p.run({{"i", Tensor::scalar(index)}}, with_default);
    const bool in_range = index >= 0 && index < 3;
    CHECK(results[0].scalar_value<int>() == (in_range ? 10 + index : 99));
    CHECK(results[1].scalar_value<int>() == (in_range ? 10 + index : 12));
    CHECK(results[2].scalar_value<int>() == (index == 0 ? 1 : 3));
  }
}

TEST_CASE("case_ takes the first that is true, or the default") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, PartialShape::scalar());
  const Output r = case_(p.s,
                         {{ops::less(p.s, x, 0), number(-1)},
                          {ops::less(p.s, x, 10), number(1)},
                          {ops::less(p.s, x, 5), number(5)}},
                         number(10))[0];
  for (const auto& [value, expected] :
       {std::pair(-3, -1), std::pair(3, 1), std::pair(12, 10)})
    CHECK(p.run({{"x", Tensor::scalar(value)}}, r)[0].scalar_value<int>() ==
          expected);
}

TEST_CASE("case_ without a default fails if no predicate is true") {
  Program p;
  const Output x = p.input("x", DataType::kInt32, PartialShape::scalar());
  const Output below = ops::less(p.s, x, 0);
  const Output above = ops::less(p.s, 10, x);
  const Output two = case_(
      p.s.named("two"), {{below, number(1)}, {above, number(2)}}, nullptr)[0];
  const Output one = case_(
      p.s.named("one"), {{below, [&](const Scope&) { return x; }}}, nullptr)[0];
  const std::vector<Feed> high = {{"x", Tensor::scalar(11)}};
  const std::vector<Feed> low = {{"x", Tensor::scalar(-1)}};
  CHECK(p.run(high, two)[0].scalar_value<int>() == 2);
  CHECK(p.run(low, two)[0].scalar_value<int>() == 1);
  CHECK(p.run(low, one)[0].scalar_value<int>() == -1);
  CHECK(p.error({{"x", Tensor::scalar(5)}}, two) ==
        "[Assert] assertion failed: [there is no default, and no predicate is "
        "true of two:] [0 0] (node \"two/one_is_true\", device "
        "/device:CPU:0)");
  CHECK(p.error(high, one) ==
        "[Assert] assertion failed: [there is no default, and no predicate is "
        "true of one:] [0] (node \"one/one_is_true\", device "
        "/device:CPU:0)");
}

TEST_CASE("an exclusive case_ fails if two predicates are true") {
  Program p;
  const Output a = p.input("a", DataType::kBool, PartialShape::scalar());
  const Output b = p.input("b", DataType::kBool, PartialShape::scalar());
  const Output r = case_(p.s, {{a, number(1)}, {b, number(2)}}, number(3),
                         {.exclusive = true})[0];
  const auto feeds = [](bool x, bool y) -> std::vector<Feed> {
    return {{"a", Tensor::scalar(x)}, {"b", Tensor::scalar(y)}};
  };
  CHECK(p.run(feeds(true, false), r)[0].scalar_value<int>() == 1);
  CHECK(p.run(feeds(false, true), r)[0].scalar_value<int>() == 2);
  CHECK(p.run(feeds(false, false), r)[0].scalar_value<int>() == 3);
  CHECK(p.error(feeds(true, true), r) ==
        "[Assert] assertion failed: [more than one predicate is true of "
        "case:] [1 1] (node \"case/exclusive\", device /device:CPU:0)");
}

TEST_CASE("an op that depends on an assertion runs only if it holds") {
  Program p;
  const Output x = p.input("x", DataType::kFloat, {-1});
  const Output all = ops::reduce_all(p.s, ops::less(p.s, x, 5.f));
  const Output check =
      ops::assert_(p.s.named("small"), all, {"x must be small, but is", x}, 2);
  const Output y = ops::with_dependencies(p.s, check, ops::neg(p.s, x));
  CHECK(elements<float>(p.run({{"x", Tensor::vector<float>({1, 2})}}, y)[0]) ==
        std::vector<float>{-1, -2});
  CHECK(p.error({{"x", Tensor::vector<float>({1, 7, 3})}}, y) ==
        "[Assert] assertion failed: [x must be small, but is] [1 7...] (node "
        "\"small\", device /device:CPU:0)");
}

TEST_CASE("a line is printed once for every time that it is reached") {
  const auto path = tagflow::testing::temp_path("line");
  Program p;
  const Output last = while_loop(
      p.s, [](const Scope& in, Output i) { return ops::less(in, i, 2); },
      [&](const Scope& in, Output i) {
        const Output line = ops::print_line(
            in, {"i is", i, "of", {1, 2, 3, 4, 5}},
            {.output_stream = "file://" + path.string(), .summarize = 1});
        return ops::add(in.with_control_dependencies(line), i, 1);
      },
      ops::constant(p.s, 0), {.parallel_iterations = 1});
  p.run({}, last);
  std::ifstream file(path);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) ==
        "i is 0 of [1 ... 5]\ni is 1 of [1 ... 5]\n");
  std::filesystem::remove(path);
}
