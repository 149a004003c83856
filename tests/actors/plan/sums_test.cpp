// Loops that sum products: delayed products give the same results, except for
// rounding, and exactly the same at any number of workers.
#include "tests/actors/program.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

Tensor numbers(const Shape& shape, int seed) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.mutable_data<float>()[i] = float((i * 37 + seed) % 101) / 101 - 0.4f;
  return tensor;
}

SessionOptions with(PassSet passes, int workers = 1) {
  SessionOptions options;
  options.passes = passes;
  options.workers = workers;
  return options;
}

// w and, for each i < n, the product of a + i and b.
Output sum_of(const Scope& s, const Output& n, const Output& w, const Output& a,
              const Output& b) {
  return while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output i = ops::cast(in, v[0], DataType::kFloat);
        const Output product =
            ops::matmul(in, ops::add(in, a, i), b, {.transpose_a = true});
        return {ops::add(in, v[0], 1), ops::add_n(in, {v[1], product})};
      },
      {0, w})[1];
}

struct Sums : Program {
  Output n = input("n", DataType::kInt32, PartialShape::scalar());
  Output w = input("w", DataType::kFloat);
  Output a = input("a", DataType::kFloat);
  Output b = input("b", DataType::kFloat);

  static std::vector<Feed> feeds(int n, int64_t rows) {
    return {{"n", Tensor::scalar(n)},
            {"w", numbers({130, 70}, 1)},
            {"a", numbers({rows, 130}, 2)},
            {"b", numbers({rows, 70}, 3)}};
  }
};

void expect_close(const Tensor& actual, const Tensor& expected) {
  REQUIRE(actual.shape() == expected.shape());
  for (int64_t i = 0; i < actual.num_elements(); ++i)
    REQUIRE(actual.data<float>()[i] ==
            doctest::Approx(expected.data<float>()[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("A loop's sum of products is the same as one by one") {
  const Sums program;
  const Output sum =
      sum_of(program.s, program.n, program.w, program.a, program.b);
  for (const int trips : {0, 1, 30})
    for (const int64_t rows : {1, 40, 600}) {
      CAPTURE(trips);
      CAPTURE(rows);
      const auto feeds = Sums::feeds(trips, rows);
      const Tensor plain = program.run(feeds, {sum}, with(PassSet::none()))[0];
      const Tensor one = program.run(feeds, {sum}, with(PassSet()))[0];
      const Tensor two = program.run(feeds, {sum}, with(PassSet(), 2))[0];
      expect_close(one, plain);
      // What is too much to be kept is cut into blocks for the workers, and a
      // library may sum up blocks of other sizes in another order.
      if (rows < 600) {
        CHECK(elements<float>(one) == elements<float>(two));
      } else {
        expect_close(two, plain);
      }
    }
}

TEST_CASE("A sum of products in a branch is as dead as the branch") {
  const Sums program;
  const Output taken = program.input("taken", DataType::kBool);
  const Output result = cond(
      program.s, taken,
      [&](const Scope& in) -> Outputs {
        return {sum_of(in, program.n, program.w, program.a, program.b)};
      },
      [&](const Scope& in) -> Outputs { return {ops::neg(in, program.w)}; })[0];
  for (const bool is_taken : {true, false}) {
    std::vector<Feed> feeds = Sums::feeds(5, 3);
    feeds.emplace_back("taken", Tensor::scalar(is_taken));
    expect_close(program.run(feeds, {result})[0],
                 program.run(feeds, {result}, with(PassSet::none()))[0]);
  }
}

TEST_CASE("A loop in a loop adds its products to what it gets") {
  const Sums program;
  const Output result = while_loop(
      program.s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 3); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                sum_of(in, program.n, v[1], program.a, program.b)};
      },
      {0, program.w})[1];
  const std::vector<Feed> feeds = Sums::feeds(7, 5);
  expect_close(program.run(feeds, {result})[0],
               program.run(feeds, {result}, with(PassSet::none()))[0]);
}

TEST_CASE("A product of another shape than the sum's fails, put off or not") {
  const Sums program;
  const Output sum =
      sum_of(program.s, program.n, program.w, program.a, program.b);
  std::vector<Feed> feeds = Sums::feeds(4, 5);
  feeds[1].second = numbers({70, 130}, 0);
  for (const PassSet passes : {PassSet(), PassSet::none()}) {
    const auto results = program.try_run(feeds, {sum}, with(passes));
    CHECK(results.status().code() == Code::kInvalidArgument);
    CHECK(contains(results.status().message(), "[130,70]"));
  }
}
