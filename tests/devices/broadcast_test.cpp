#include "devices/broadcast.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace tagflow::devices {

namespace {

// The offset of element `index` of `result` in an operand, dimension by
// dimension.
int64_t offset_of(const Shape& result, const Shape& operand, int64_t index) {
  int64_t offset = 0, stride = 1;
  for (int d = result.rank() - 1; d >= 0; --d) {
    const int64_t at = index % result.dim(d);
    index /= result.dim(d);
    const int own = d - (result.rank() - operand.rank());
    if (own < 0) continue;
    if (operand.dim(own) != 1) offset += at * stride;
    stride *= operand.dim(own);
  }
  return offset;
}

// Walks the plan over rows [begin, end) and compares every offset.
void check_rows(const Shape& a, const Shape& b, const Shape& c) {
  const Result<Shape> result = broadcast_shapes({&a, &b, &c});
  REQUIRE(result.ok());
  const BroadcastPlan plan(*result, {&a, &b, &c});
  CHECK(plan.rows() * plan.row_size() == result->num_elements());
  const Shape* operands[] = {&a, &b, &c};
  int64_t visited = 0;
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>{0, plan.rows() / 2},
        {plan.rows() / 2, plan.rows()}}) {
    plan.for_each_row(begin, end, [&](int64_t row, const auto& offsets) {
      ++visited;
      for (size_t k = 0; k < 3; ++k)
        for (int64_t i = 0; i < plan.row_size(); ++i)
          REQUIRE(offsets[k] + (plan.moves(k) ? i : 0) ==
                  offset_of(*result, *operands[k], row * plan.row_size() + i));
    });
  }
  CHECK(visited == plan.rows());
}

}  // namespace

TEST_CASE("shapes are broadcast by numpy's rules") {
  const Shape a{2, 1, 3}, b{4, 1}, c{};
  CHECK(broadcast_shapes({&a, &b, &c})->to_string() == "[2,4,3]");
  const Shape empty{0, 1}, one{1, 5};
  CHECK(broadcast_shapes({&empty, &one})->to_string() == "[0,5]");
}

TEST_CASE("broadcasting: shapes that do not fit are named") {
  const Shape a{2, 3}, b{2, 4};
  CHECK(broadcast_shapes({&a, &b}).status().message() ==
        "incompatible shapes: [2,3] and [2,4]");
  const Shape empty{0}, two{2};
  CHECK(!broadcast_shapes({&empty, &two}).ok());
}

TEST_CASE("broadcasting: neighbouring dimensions of one kind are one loop") {
  const Shape a{4, 5, 6}, b{6}, scalar{};
  const BroadcastPlan same(a, {&a, &a});
  CHECK(same.rows() == 1);
  CHECK(same.row_size() == 120);
  const BroadcastPlan vector(a, {&a, &b});
  CHECK(vector.rows() == 20);
  CHECK(vector.row_size() == 6);
  CHECK(vector.moves(1));
  const BroadcastPlan one(a, {&a, &scalar});
  CHECK(one.rows() == 1);
  CHECK(!one.moves(1));
}

TEST_CASE("a broadcast plan visits the elements in numpy's order") {
  check_rows({2, 3}, {3}, {});
  check_rows({2, 1, 3}, {4, 1}, {1, 1, 1});
  check_rows({5, 1, 1, 2}, {1, 3, 1, 2}, {4, 1});
  check_rows({1}, {1, 1}, {});
  check_rows({7, 1}, {1, 7}, {7, 7});
}

TEST_CASE("a broadcast plan agrees with a plain walk on random shapes") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const int rank = int(random() % 5);
    Shape full, shapes[3];
    for (int d = 0; d < rank; ++d) full.add_dim(1 + int64_t(random() % 4));
    for (Shape& shape : shapes)
      for (int d = int(random() % size_t(rank + 1)); d < rank; ++d)
        shape.add_dim(random() % 2 == 0 ? full.dim(d) : 1);
    check_rows(shapes[0], shapes[1], shapes[2]);
  }
}

}  // namespace tagflow::devices
