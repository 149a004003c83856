// Rules of ops on sparse tensors, by their values.
#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

Tensor places(int64_t rank, std::vector<int64_t> coordinates) {
  return Tensor::of<int64_t>({int64_t(coordinates.size()) / rank, rank},
                             coordinates);
}

Tensor shape_of(std::vector<int64_t> dims) {
  return Tensor::of<int64_t>({int64_t(dims.size())}, dims);
}

// Where the elements of a sparse tensor of shape [3, 4] are.
const Tensor& five() {
  static const Tensor at = places(2, {0, 1, 0, 3, 1, 0, 2, 1, 2, 2});
  return at;
}

const Tensor& size() {
  static const Tensor size = shape_of({3, 4});
  return size;
}

}  // namespace

TEST_CASE("sparse tensors that are reordered, joined or cut have gradients") {
  const Tensor mixed = places(2, {2, 1, 0, 3, 2, 0, 0, 0});
  check_squares(outputs_of("SparseReorder", 1, {mixed, size()}, {1}),
                {values({4})});
  check_squares(
      [=](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("SparseConcat", {five(), mixed, x[0], x[1], size(), size()},
                    {{"concat_dim", -1}, {"N", 2}})[1];
      },
      {values({5}), values({4})});
  check_squares(outputs_of("SparseSplit", 2, {1, five(), size()}, {2, 3},
                           {{"num_split", 2}}),
                {values({5})});
  check_squares(
      outputs_of("SparseSlice", 1,
                 {five(), size(), shape_of({0, 1}), shape_of({3, 2})}, {1}),
      {values({5})});
}

TEST_CASE("filled rows have gradients by the default value as well") {
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("SparseFillEmptyRows", {places(2, {2, 0, 0, 1, 2, 1}), x[0],
                                            shape_of({5, 2}), x[1]})[1];
      },
      {values({3}), values({})});
}

TEST_CASE("gradients of parts of sparse tensors have gradients") {
  check_squares(
      outputs_of("SparseSliceGrad", 0,
                 {five(), shape_of({0, 1}), places(2, {0, 0, 2, 0, 2, 1})},
                 {0}),
      {values({3})});
  check_squares(
      outputs_of("SparseFillEmptyRowsGrad", 1, {shape_of({3, 0, 2})}, {0, 1}),
      {values({5})});
  // One of the sum was dropped.
  const Tensor sum = places(2, {0, 1, 0, 2, 1, 0, 2, 1, 2, 2});
  check_squares(
      outputs_of("SparseAddGrad", 0,
                 {five(), places(2, {0, 2, 0, 3, 2, 1}), sum}, {0, 1}),
      {values({5})});
}

TEST_CASE("sparse tensors made dense have gradients") {
  const auto dense = [](Tensor indices, Tensor shape,
                        bool validates) -> Function {
    return [=](const graph::Scope& s, const graph::Outputs& x) {
      return s.op("SparseToDense", {indices, shape, x[0], x[1]},
                  {{"validate_indices", validates}});
    };
  };
  const Tensor default_value = values({});
  check_squares(dense(five(), size(), true), {values({5}), default_value});
  check_squares(dense(five(), size(), true), {values({}), default_value});
  // The last of those at one place counts.
  check_squares(dense(places(2, {1, 1, 0, 0, 1, 1}), size(), false),
                {values({3}), default_value});
  check_squares(dense(places(2, {1, 1, 0, 0, 1, 1}), size(), false),
                {values({}), default_value});
  check_squares(dense(Tensor::vector<int32_t>({1, 3}),
                      Tensor::vector<int32_t>({5}), true),
                {values({2}), default_value});
  check_squares(
      dense(Tensor::scalar<int32_t>(2), Tensor::vector<int32_t>({3}), true),
      {values({}), default_value});
}

TEST_CASE("sums of two sparse tensors have gradients") {
  const Tensor other = places(2, {0, 1, 0, 2, 2, 2});
  for (const char* op :
       {"SparseAdd", "SparseSparseMaximum", "SparseSparseMinimum"}) {
    const bool is_sum = std::string_view(op) == "SparseAdd";
    check_squares(
        [=](const graph::Scope& s, const graph::Outputs& x) {
          graph::Inputs inputs = {five(), x[0], size(), other, x[1], size()};
          if (is_sum) inputs.add(Tensor::scalar(0.01));
          return s.op(op, inputs)[1];
        },
        {values({5}), values({3})});
  }
  // What comes to less than the threshold has no part in the sum.
  check_squares(
      [=](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("SparseAdd", {five(), x[0], size(), other, x[1], size(),
                                  Tensor::scalar(0.5)})[1];
      },
      {Tensor::vector<double>({0.3, 0.1, 2, 3, 4}),
       Tensor::vector<double>({-0.2, 0.1, 5})});
}

TEST_CASE("a sparse and a dense tensor have gradients by both") {
  for (const char* op :
       {"SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"}) {
    const auto combine = [=](const graph::Scope& s, const graph::Outputs& x) {
      return s.op(op, {five(), x[0], size(), x[1]});
    };
    for (const Dims& dense : {Dims{3, 4}, Dims{4}, Dims{3, 1}, Dims{}, Dims{1}})
      check_gradients(combine, {values({5}), values(dense, 0.5, 1.5)},
                      {.tolerance = 1e-5});
    check_gradients(combine,
                    {complex_values({5}), complex_values({3, 1}, 1, 2)},
                    {.tolerance = 1e-5});
  }
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("SparseTensorDenseAdd", {five(), x[0], size(), x[1]});
      },
      {values({5}), values({3, 4})});
}

TEST_CASE("products of a sparse and a dense matrix have gradients") {
  for (const bool adjoint_a : {false, true})
    for (const bool adjoint_b : {false, true}) {
      const auto product = [=](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("SparseTensorDenseMatMul", {five(), x[0], size(), x[1]},
                    {{"adjoint_a", adjoint_a}, {"adjoint_b", adjoint_b}});
      };
      const int64_t inner = adjoint_a ? 3 : 4;
      const Dims b = adjoint_b ? Dims{2, inner} : Dims{inner, 2};
      check_squares(product, {values({5}), values(b)});
      check_gradients(product, {complex_values({5}), complex_values(b)});
    }
}

TEST_CASE("reductions of sparse tensors have gradients") {
  const Tensor at = places(3, {0, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1});
  const Tensor shape = shape_of({2, 3, 2});
  const Tensor none = Tensor::of<int32_t>({0}, {});
  for (const char* op : {"SparseReduceSum", "SparseReduceMax",
                         "SparseReduceSumSparse", "SparseReduceMaxSparse"}) {
    const int values_output = std::string_view(op).ends_with("Sparse") ? 1 : 0;
    for (const bool keep_dims : {false, true})
      for (const graph::Input& axes :
           {graph::Input({1}), graph::Input({0, -1}), graph::Input(2),
            graph::Input({0, 1, 2}), graph::Input(none)})
        check_squares(
            [=](const graph::Scope& s, const graph::Outputs& x) {
              return s.op(op, {at, x[0], shape, axes},
                          {{"keep_dims", keep_dims}})[values_output];
            },
            {values({5})});
  }
  const Tensor shares = gradients_of(
      [=](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("SparseReduceMax", {five(), x[0], size(), 1});
      },
      {Tensor::vector<double>({2, 2, 1, 3, 4})})[0];
  CHECK(identical(shares, Tensor::vector<double>({0.5, 0.5, 1, 0, 1})));
}

TEST_CASE("a softmax over the rows of a sparse tensor has gradients") {
  check_squares(outputs_of("SparseSoftmax", 1, {five(), size()}, {0}),
                {values({5})});
}
