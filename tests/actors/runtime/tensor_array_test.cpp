// TensorArrays of the builder, in loops and conditionals, at run time.
#include <doctest/doctest.h>

#include "tests/actors/program.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

TEST_CASE("a loop collects what it computes") {
  Program p;
  const Output n = p.input("n", DataType::kInt32, PartialShape::scalar());
  const auto last = while_loop(
      p.s,
      [&](const Scope& in, const std::pair<Output, TensorArray>& v) {
        return ops::less(in, v.first, n);
      },
      [](const Scope& in, const std::pair<Output, TensorArray>& v) {
        return std::pair(ops::add(in, v.first, 1),
                         v.second.write(in, v.first, ops::square(in, v.first)));
      },
      std::pair(ops::constant(p.s, 0), TensorArray(p.s, n, DataType::kInt32)));
  const Outputs fetches = {last.second.stack(p.s), last.second.size(p.s)};
  for (const int count : {0, 1, 5}) {
    CAPTURE(count);
    const auto results = p.run({{"n", Tensor::scalar(count)}}, fetches);
    std::vector<int> squares;
    for (int i = 0; i < count; ++i) squares.push_back(i * i);
    CHECK(elements<int>(results[0]) == squares);
    CHECK(results[1].scalar_value<int>() == count);
  }
}

TEST_CASE("a loop takes apart what an array holds") {
  Program p;
  const Output rows = p.input("rows", DataType::kFloat, {-1, 2});
  const Output n = ops::gather(p.s, ops::shape(p.s, rows), 0);
  const TensorArray array =
      TensorArray(p.s, n, DataType::kFloat).unstack(p.s, rows);
  // Sums the rows, the last one first.
  const Output sum =
      while_loop(
          p.s,
          [](const Scope& in, const std::pair<Output, Output>& v) {
            return ops::greater_equal(in, v.first, 0);
          },
          [&](const Scope& in, const std::pair<Output, Output>& v) {
            return std::pair(ops::sub(in, v.first, 1),
                             ops::add(in, v.second, array.read(in, v.first)));
          },
          std::pair(ops::sub(p.s, n, 1), ops::fill(p.s, {2}, 0.f)))
          .second;
  CHECK(elements<float>(
            p.run({{"rows", Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})}},
                  sum)[0]) == std::vector<float>{9, 12});
}

TEST_CASE("arrays split and concat, scatter and gather") {
  Program p;
  const Output x = p.input("x", DataType::kFloat, {-1});
  const TensorArray pieces(p.s, 3, DataType::kFloat, {.infer_shape = false});
  const TensorArray split = pieces.split(p.s, x, {2, 0, 3});
  const TensorArray rows =
      TensorArray(p.s, 3, DataType::kFloat).scatter(p.s, {2, 0, 1}, {1, 2, 3});
  const Outputs fetches = {split.concat(p.s), rows.stack(p.s)};
  const auto results =
      p.run({{"x", Tensor::vector<float>({1, 2, 3, 4, 5})}}, fetches);
  CHECK(elements<float>(results[0]) == std::vector<float>{1, 2, 3, 4, 5});
  CHECK(elements<float>(results[1]) == std::vector<float>{2, 3, 1});
  const TensorArray kept =
      TensorArray(p.s, 3, DataType::kFloat, {.clear_after_read = false})
          .unstack(p.s, {7, 8, 9});
  CHECK(elements<float>(p.run({}, kept.gather(p.s, {2, 0, 2}))[0]) ==
        std::vector<float>{9, 7, 9});
}

TEST_CASE("a tensor array grows if it may") {
  Program p;
  const TensorArray array(p.s, 0, DataType::kInt32, {.dynamic_size = true});
  const TensorArray written = array.write(p.s, 0, 5).write(p.s, 1, 6);
  CHECK(elements<int>(p.run({}, written.stack(p.s))[0]) ==
        std::vector<int>{5, 6});
}

TEST_CASE("a conditional writes or does not") {
  Program p;
  const Output yes = p.input("yes", DataType::kBool, PartialShape::scalar());
  const TensorArray array =
      TensorArray(p.s, 2, DataType::kInt32).write(p.s, 0, 1);
  const TensorArray after = cond(
      p.s, yes, [&](const Scope& in) { return array.write(in, 1, 2); },
      [&](const Scope& in) { return array.write(in, 1, 3); });
  CHECK(after.handle() == array.handle());
  const Output all = after.stack(p.s);
  CHECK(elements<int>(p.run({{"yes", Tensor::scalar(true)}}, all)[0]) ==
        std::vector<int>{1, 2});
  CHECK(elements<int>(p.run({{"yes", Tensor::scalar(false)}}, all)[0]) ==
        std::vector<int>{1, 3});
}

TEST_CASE("every instance of an inner loop has an array of its own") {
  Program p;
  const TensorArray rows(p.s, 3, DataType::kInt32);
  const TensorArray last =
      while_loop(
          p.s,
          [](const Scope& in, const std::pair<Output, TensorArray>& v) {
            return ops::less(in, v.first, 3);
          },
          [](const Scope& in, const std::pair<Output, TensorArray>& outer) {
            const TensorArray row(in, 2, DataType::kInt32);
            const auto inner = while_loop(
                in,
                [](const Scope& c, const std::pair<Output, TensorArray>& v) {
                  return ops::less(c, v.first, 2);
                },
                [&](const Scope& b, const std::pair<Output, TensorArray>& v) {
                  const Output value =
                      ops::add(b, ops::mul(b, outer.first, 10), v.first);
                  return std::pair(ops::add(b, v.first, 1),
                                   v.second.write(b, v.first, value));
                },
                std::pair(ops::constant(in, 0), row));
            return std::pair(
                ops::add(in, outer.first, 1),
                outer.second.write(in, outer.first, inner.second.stack(in)));
          },
          std::pair(ops::constant(p.s, 0), rows))
          .second;
  CHECK(elements<int>(p.run({}, last.stack(p.s))[0]) ==
        std::vector<int>{0, 1, 10, 11, 20, 21});
}

TEST_CASE("a tensor array is closed after the ops that the flow has seen") {
  Program p;
  const TensorArray array =
      TensorArray(p.s, 1, DataType::kInt32).write(p.s, 0, 4);
  const Output value = array.read(p.s, 0);
  const Output closed = array.close(p.s.with_control_dependencies(value));
  CHECK(p.run({}, {value, closed})[0].scalar_value<int>() == 4);
}
