#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

const Tensor kSorted = Tensor::vector<int32_t>({0, 0, 1, 1, 1, 3});
const Tensor kUnsorted = Tensor::vector<int32_t>({2, 0, -1, 2, 0, 2});
const Tensor kMatrixIds = Tensor::of<int64_t>({2, 3}, {2, 0, -1, 2, 0, 2});
const char* const kSortedOps[] = {"SegmentSum", "SegmentMean", "SegmentProd",
                                  "SegmentMax", "SegmentMin"};
const char* const kUnsortedOps[] = {"UnsortedSegmentSum", "UnsortedSegmentProd",
                                    "UnsortedSegmentMax", "UnsortedSegmentMin"};

// The op of rows x, of which 3 is the number of segments, without the extremes
// that empty segments have.
Function unsorted(const char* op, Tensor ids) {
  return [=](const graph::Scope& s, const graph::Outputs& x) {
    const Output y = s.op(op, {x[0], ids, 4});
    const Output is_usual = ops::less(s, ops::abs(s, y), 1e9);
    return ops::select(s, is_usual, y, 0);
  };
}

}  // namespace

TEST_CASE("segments of sorted ids have gradients, with gaps between them") {
  for (const char* op : kSortedOps) {
    CAPTURE(op);
    check_gradients(op_with(op, {kSorted}), {values({6})});
    check_gradients(op_with(op, {kSorted}), {values({6, 2})});
  }
}

TEST_CASE("segments of ids in any order have gradients") {
  for (const char* op : kUnsortedOps) {
    CAPTURE(op);
    check_gradients(unsorted(op, kUnsorted), {values({6})});
    check_gradients(unsorted(op, kUnsorted), {values({6, 2})});
    check_gradients(unsorted(op, kMatrixIds), {values({2, 3})});
    check_gradients(unsorted(op, kMatrixIds), {values({2, 3, 2})});
  }
}

TEST_CASE("ids that come from elsewhere have gradients of the same kind") {
  for (const char* op : kUnsortedOps) {
    CAPTURE(op);
    check_gradients(
        [op](const graph::Scope& s, const graph::Outputs& x) {
          const Output ids = ops::cast(s, x[1], DataType::kInt32);
          return s.op(op, {x[0], ids, 2});
        },
        {values({4, 2}), Tensor::vector<double>({0.5, 1.5, 1.5, 0.5})});
  }
}

TEST_CASE("products of segments have gradients at factors of zero") {
  const Tensor x = Tensor::vector<double>({0, 2, 0, 0, 3, 4});
  check_gradients(op_with("SegmentProd", {kSorted}), {x});
  check_gradients(unsorted("UnsortedSegmentProd", kUnsorted), {x});
  const Tensor zeros = Tensor::vector<double>({0, 2, 0, 0, 0, 0});
  check_gradients(op_with("SegmentProd", {kSorted}), {zeros},
                  {.order = 3, .step = 0.1});
}

TEST_CASE("segments of complex numbers have gradients") {
  for (const char* op : {"SegmentSum", "SegmentMean", "SegmentProd"}) {
    CAPTURE(op);
    check_gradients(op_with(op, {kSorted}), {complex_values({6})});
  }
}

TEST_CASE("equal extremes of a segment share its gradient") {
  const Tensor x = Tensor::vector<double>({3, 3, 1, 2, 2, 5});
  const auto sorted = gradients_of(op_with("SegmentMax", {kSorted}), {x});
  CHECK(identical(sorted[0], Tensor::vector<double>({.5, .5, 0, .5, .5, 1})));
  const auto any = gradients_of(unsorted("UnsortedSegmentMax", kUnsorted),
                                {Tensor::vector<double>({3, 3, 9, 3, 2, 1})});
  CHECK(identical(any[0], Tensor::vector<double>({.5, 1, 0, .5, 0, 0})));
}

TEST_CASE("segments of rows that are picked have gradients") {
  const Tensor indices = Tensor::vector<int32_t>({3, 0, 3, 1});
  const Tensor ids = Tensor::vector<int32_t>({0, 0, 2, 2});
  for (const std::string kind : {"Sum", "Mean", "SqrtN"}) {
    CAPTURE(kind);
    const std::string op = "SparseSegment" + kind;
    const Tensor x = values({5, 2});
    for (const bool sparse : {false, true}) {
      const AttrMap attrs = {{"sparse_gradient", sparse}};
      check_gradients(op_with(op, {indices, ids}, attrs), {x});
      check_gradients(op_with(op + "WithNumSegments", {indices, ids, 4}, attrs),
                      {x});
    }
    const Tensor grad = values({3, 2});
    check_gradients(op_with(op + "Grad", {indices, ids, 5}), {grad});
    check_gradients(op_with(op + "GradV2", {indices, ids, 5}), {grad});
  }
}

TEST_CASE("the gradient of picked rows is sparse if that is asked for") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output x = ops::placeholder(s, DataType::kDouble, {5, 2});
  const Output y = s.op("SparseSegmentSum", {x, {1, 3}, {0, 0}},
                        {{"sparse_gradient", true}});
  const auto grads = gradients(s, {y}, {x});
  REQUIRE(s.ok());
  CHECK(grads[0].is_sparse());
}

TEST_CASE("segments in a loop save what they need of each iteration") {
  const auto check = [](const std::string& op, std::vector<graph::Input> more) {
    CAPTURE(op);
    check_gradients(
        repeated([=](const graph::Scope& s, const graph::Outputs& x) {
          const Output y = op_with(op, more)(s, {x[0]})[0];
          const Output rows = ops::gather(s, y, {0, 1, 1, 0, 1, 0});
          return ops::mul(s, x[0], ops::sin(s, rows));
        }),
        {values({6, 2}, 0.5, 1.5)});
  };
  for (const char* op : kSortedOps) check(op, {kSorted});
  for (const char* op : kUnsortedOps)
    check(op, {Tensor::vector<int32_t>({1, 0, -1, 1, 0, 1}), 2});
  check("SparseSegmentMean", {{3, 0, 5, 1}, {0, 0, 1, 1}});
}
