#include "graph/shape.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace tagflow;

namespace {

constexpr int64_t kHuge = int64_t(1) << 40;

std::string refusal(std::vector<int64_t> dims) {
  const Result<Shape> shape = Shape::make(dims);
  REQUIRE_FALSE(shape.ok());
  CHECK(shape.status().code() == Code::kInvalidArgument);
  return std::string(shape.status().message());
}

}  // namespace

TEST_CASE("a scalar has rank 0 and one element") {
  CHECK(Shape().rank() == 0);
  CHECK(Shape().num_elements() == 1);
  CHECK(Shape().to_string() == "[]");
}

TEST_CASE("the number of elements is the product of the dimensions") {
  CHECK(Shape({2, 3, 4}).num_elements() == 24);
  CHECK(Shape({2, 0, 4}).num_elements() == 0);
}

TEST_CASE("dimensions from outside are checked") {
  CHECK(refusal({2, -1}) == "[shape] negative dimension -1 in [2,-1]");
  CHECK(refusal({kHuge, kHuge}) ==
        "[shape] the number of elements of [1099511627776,1099511627776] "
        "overflows");
  CHECK(refusal(std::vector<int64_t>(255, 1)) ==
        "[shape] rank 255 is over the limit of 254");
  CHECK(Shape::make(std::vector<int64_t>(254, 1)).ok());
}

TEST_CASE("an empty shape with huge dimensions has no elements") {
  for (std::vector<int64_t> dims :
       {std::vector<int64_t>{kHuge, kHuge, 0}, {0, kHuge, kHuge}}) {
    const Result<Shape> shape = Shape::make(dims);
    REQUIRE(shape.ok());
    CHECK(shape->num_elements() == 0);
  }
}

TEST_CASE("dimensions are inserted and removed in place") {
  Shape shape({2, 3});
  shape.insert_dim(0, 5);
  shape.insert_dim(3, 7);
  CHECK(shape.to_string() == "[5,2,3,7]");
  shape.remove_dim(1);
  shape.set_dim(0, 1);
  shape.add_dim(9);
  CHECK(shape.to_string() == "[1,3,7,9]");
}

TEST_CASE("a partial shape shows what it does not know") {
  CHECK(PartialShape().to_string() == "<unknown>");
  CHECK(PartialShape({2, -1}).to_string() == "[2,?]");
  CHECK(PartialShape::of_rank(2).to_string() == "[?,?]");
  CHECK(PartialShape::scalar().to_string() == "[]");
}

TEST_CASE("a partial shape from outside is checked") {
  const std::vector<int64_t> dims = {2, -2};
  CHECK(PartialShape::make(dims).status().message() ==
        "[shape] negative dimension -2 in [2,-2]");
  CHECK(PartialShape::make(std::vector<int64_t>(255, 1)).status().message() ==
        "[shape] rank 255 is over the limit of 254");
}

TEST_CASE("a partial shape becomes a shape only if it is fully known") {
  CHECK_FALSE(PartialShape().to_shape());
  CHECK_FALSE(PartialShape({2, -1}).to_shape());
  CHECK(*PartialShape({2, 3}).to_shape() == Shape({2, 3}));
  CHECK(PartialShape({2, 3}).num_elements() == 6);
  CHECK(PartialShape({2, -1}).num_elements() == PartialShape::kUnknown);
  CHECK(PartialShape({kHuge, kHuge}).num_elements() == PartialShape::kUnknown);
}

TEST_CASE("merging joins what both shapes know") {
  CHECK(PartialShape({2, -1}).merge({-1, 3})->to_string() == "[2,3]");
  CHECK(PartialShape().merge({2})->to_string() == "[2]");
  CHECK(PartialShape({2}).merge(PartialShape())->to_string() == "[2]");
  CHECK(PartialShape({2, 3}).merge({2, 4}).status().message() ==
        "shapes [2,3] and [2,4] differ in dimension 1");
  CHECK(PartialShape({2}).merge({2, 4}).status().message() ==
        "shapes [2] and [2,4] have different ranks");
}

TEST_CASE("relaxing keeps what both shapes agree on") {
  CHECK(PartialShape({2, 3}).relax({2, 4}).to_string() == "[2,?]");
  CHECK(PartialShape({2, 3}).relax({2}).to_string() == "<unknown>");
  CHECK(PartialShape({2}).relax(PartialShape()).to_string() == "<unknown>");
}

TEST_CASE("a partial shape accepts the shapes that fit it") {
  CHECK(PartialShape().accepts({1, 2}));
  CHECK(PartialShape({-1, 2}).accepts({1, 2}));
  CHECK_FALSE(PartialShape({-1, 2}).accepts({1, 3}));
  CHECK_FALSE(PartialShape({-1}).accepts({1, 3}));
  CHECK(PartialShape({-1}).compatible({4}));
  CHECK_FALSE(PartialShape({3}).compatible({4}));
}

TEST_CASE("a product that overflows is not a number") {
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(checked_multiply(3, 4) == 12);
  CHECK(checked_multiply(most, 1) == most);
  CHECK(checked_multiply(0, most) == 0);
  CHECK_FALSE(checked_multiply(most, 2));
  CHECK_FALSE(checked_multiply(-1, 2));
  CHECK_FALSE(checked_multiply(2, -1));
}
