// The arithmetic of windows.
#include "graph/ops/convolution_window.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/graph/passes/whole_program.h"

namespace tagflow::graph {
namespace {

using testing::placeholder;

void expect_positions(const WindowDim& window, int64_t input, Padding padding,
                      int64_t count, int64_t pad_before) {
  const auto positions = slide(window, input, padding);
  REQUIRE(positions.ok());
  CHECK(positions->count == count);
  CHECK(positions->pad_before == pad_before);
}

TEST_CASE("a valid window stays within the input") {
  expect_positions({3}, 5, Padding::kValid, 3, 0);
  expect_positions({3, 2}, 6, Padding::kValid, 2, 0);
  expect_positions({2, 1, 3}, 5, Padding::kValid, 2, 0);
  expect_positions({3}, 2, Padding::kValid, 0, 0);
  CHECK_FALSE(slide({4}, 2, Padding::kValid).ok());
}

TEST_CASE("a same window has a position per stride, the odd pad behind") {
  expect_positions({3}, 5, Padding::kSame, 5, 1);
  expect_positions({2}, 5, Padding::kSame, 5, 0);
  expect_positions({3, 2}, 6, Padding::kSame, 3, 0);
  expect_positions({4}, 4, Padding::kSame, 4, 1);
  expect_positions({1, 2}, 3, Padding::kSame, 2, 0);
  expect_positions({9}, 0, Padding::kSame, 0, 4);
}

TEST_CASE("an explicit padding widens the input") {
  WindowDim window{3};
  window.pad_before = 2;
  window.pad_after = 1;
  expect_positions(window, 4, Padding::kExplicit, 5, 2);
  // Without the padding if it is not explicit.
  expect_positions(window, 4, Padding::kValid, 2, 0);
}

TEST_CASE("a window of an empty filter is nowhere and everywhere") {
  expect_positions({0}, 4, Padding::kSame, 4, 0);
  expect_positions({0}, 4, Padding::kValid, 5, 0);
}

TEST_CASE("shape functions know of no window larger than its input") {
  CHECK(*inferred_count({3}, 3, Padding::kValid) == 1);
  CHECK(*inferred_count({3}, 2, Padding::kSame) == 2);
  CHECK(*inferred_count({0}, 0, Padding::kValid) == 1);
  CHECK_FALSE(inferred_count({3}, 2, Padding::kValid).ok());
  WindowDim window{3, 3, 2};
  window.pad_before = 1;
  window.pad_after = 2;
  CHECK_FALSE(inferred_count(window, 1, Padding::kExplicit).ok());
  CHECK(*inferred_count(window, 2, Padding::kExplicit) == 1);
}

TEST_CASE("a convolution with empty strides or dilations is refused") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, PartialShape());
  for (const char* empty : {"strides", "dilations"}) {
    AttrMap attrs = {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                     {"padding", std::string("SAME")}};
    attrs.insert_or_assign(empty, std::vector<int64_t>());
    const std::vector<Endpoint> inputs = {{x, 0}, {x, 0}};
    const auto node = graph.add("y", "Conv2D", inputs, attrs);
    CHECK(node.status().code() == Code::kInvalidArgument);
    CHECK(node.status().message().find(fmt::format(
              "{} has 0 values, not 4", empty)) != std::string::npos);
  }
}

TEST_CASE("windows that are not positive or overflow are refused") {
  CHECK_FALSE(slide({-1}, 4, Padding::kSame).ok());
  CHECK_FALSE(slide({1, 0}, 4, Padding::kSame).ok());
  CHECK_FALSE(slide({1, 1, -1}, 4, Padding::kSame).ok());
  const int64_t huge = std::numeric_limits<int64_t>::max();
  CHECK_FALSE(slide({huge, 1, huge}, 4, Padding::kSame).ok());
  CHECK_FALSE(slide({3}, huge, Padding::kSame).ok());
}

}  // namespace
}  // namespace tagflow::graph
