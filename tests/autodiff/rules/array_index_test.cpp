// Rules of array ops that pick elements, and of array ops in loops.
#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

const AttrMap kIgnore = {{"bad_indices_policy", "IGNORE"}};

// Whether the gradient of gathered rows is sparse.
bool gives_slices(const Function& f, const Dims& shape) {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output x = ops::placeholder(s, DataType::kDouble, shape);
  const Gradient gradient = gradients(s, f(s, x), {x})[0];
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  return gradient.is_sparse();
}

}  // namespace

TEST_CASE("slices have gradients that are zero around them") {
  const Tensor x = values({3, 4});
  check_squares(op_with("Slice", {{1, 0}, {2, 3}}), {x});
  check_squares(op_with("Slice", {{1, 0}, {-1, 0}}), {x});
  check_squares(op_with_unknown("Slice", {{1, 0}, {2, 3}}), {x});
  const Tensor none = Tensor::of<int32_t>({0}, {});
  check_squares(op_with("Slice", {none, none}), {values({})});
  check_squares(op_with("Slice", {Tensor::vector<int64_t>({1, 1}),
                                  Tensor::vector<int64_t>({1, -1})}),
                {x});
}

TEST_CASE("strided slices have gradients with all masks") {
  const Tensor x = values({3, 4, 2});
  check_squares(op_with("StridedSlice", {{2, 1, 0}, {0, 4, 2}, {-1, 2, 1}}),
                {x});
  check_squares(op_with("StridedSlice", {{0, 0}, {0, 1}, {1, 1}},
                        {{"ellipsis_mask", 1}, {"shrink_axis_mask", 2}}),
                {x});
  check_squares(
      op_with("StridedSlice", {{0, 1, 3}, {0, 0, 2}, {1, 1, -1}},
              {{"new_axis_mask", 1}, {"begin_mask", 4}, {"end_mask", 2}}),
      {x});
  check_squares(op_with("StridedSlice", {Tensor::vector<int16_t>({1}),
                                         Tensor::vector<int16_t>({3}),
                                         Tensor::vector<int16_t>({1})}),
                {x});
  check_squares(op_with_unknown("StridedSlice", {{0, 1}, {3, 3}, {2, 1}}), {x});
}

TEST_CASE("updates of slices have gradients where they count") {
  const auto update = [](AttrMap masks) -> Function {
    return [masks](const graph::Scope& s, const graph::Outputs& x) {
      return s.op("TensorStridedSliceUpdate",
                  {x[0], {0, 1}, {3, 3}, {2, 1}, x[1]}, masks);
    };
  };
  check_squares(update({}), {values({3, 4}), values({2, 2})});
  check_squares(update({}), {values({3, 4}), values({2})});
  check_squares(update({{"shrink_axis_mask", 2}}),
                {values({3, 4}), values({})});
}

TEST_CASE("gathers along any axis have gradients") {
  const Tensor x = values({3, 4, 2});
  const Tensor indices = Tensor::of<int32_t>({2, 2}, {1, 0, 2, 1});
  check_squares(op_with("Gather", {{2, 0, 2}}), {x});
  check_squares(op_with("Gather", {indices}), {x});
  check_squares(op_with("Gather", {1}), {x});
  for (const int axis : {0, 1, 2, -1})
    check_squares(op_with("GatherV2", {{0, 1, 0}, axis}), {x});
  check_squares(op_with("GatherV2", {indices, -3}), {x});
  check_squares(op_with_unknown("GatherV2", {indices, 1}), {x});
  check_squares(op_with("GatherV2", {Tensor::vector<int16_t>({1, 1}), 0}), {x});
  check_squares(op_with("GatherV2", {Tensor::of<int32_t>({0}, {}), 1}), {x});
}

TEST_CASE("gathers of batches have gradients") {
  const Tensor x = values({2, 3, 4, 2});
  const Tensor indices = Tensor::of<int32_t>({2, 3}, {1, 0, 1, 1, 1, 0});
  const AttrMap one = {{"batch_dims", 1}};
  for (const int axis : {1, 2, -1})
    check_squares(op_with("GatherV2", {indices, axis}, one), {x});
  check_squares(op_with("GatherV2", {Tensor::vector<int32_t>({1, 0}), 2}, one),
                {x});
  check_squares(op_with("GatherV2", {indices, 2}, {{"batch_dims", 2}}), {x});
  const AttrMap last = {{"batch_dims", -1}};
  check_squares(op_with("GatherV2", {indices, 1}, last), {x});
  check_squares(op_with_unknown("GatherV2", {indices, 3}, last), {x});
}

TEST_CASE("gathers of rows give slices") {
  CHECK(gives_slices(op_with("Gather", {{2, 0}}), {3, 2}));
  CHECK(gives_slices(op_with("GatherV2", {{2, 0}, 0}), {3, 2}));
  CHECK(!gives_slices(op_with("GatherV2", {{1, 0}, 1}), {3, 2}));
  const Tensor rows = Tensor::of<int32_t>({2, 1}, {2, 0});
  CHECK(gives_slices(op_with("GatherNd", {rows}), {3, 2}));
  CHECK(!gives_slices(op_with("GatherNd", {rows}, kIgnore), {3, 2}));
}

TEST_CASE("gathers by coordinates have gradients") {
  const Tensor x = values({3, 4});
  const Tensor rows = Tensor::of<int32_t>({3, 1}, {2, 0, 2});
  const Tensor elements = Tensor::of<int64_t>({2, 1, 2}, {2, 3, 0, 1});
  check_squares(op_with("GatherNd", {rows}), {x});
  check_squares(op_with("GatherNd", {elements}), {x});
  check_squares(op_with("GatherNd", {{1}}), {x});
  check_squares(op_with("GatherNd", {{1, 2}}), {x});
  check_squares(op_with_unknown("GatherNd", {elements}), {x});
  check_squares(op_with("GatherNd", {Tensor::of<int16_t>({1, 2}, {1, 2})}),
                {x});
  check_squares(
      op_with("GatherNd", {Tensor::of<int32_t>({2, 1}, {2, 7})}, kIgnore), {x});
}

TEST_CASE("one-hot tensors have gradients by their values") {
  const Tensor indices = Tensor::of<int32_t>({2, 2}, {1, 0, 5, 1});
  for (const int axis : {-1, 0, 1})
    check_squares(
        [=](const graph::Scope& s, const graph::Outputs& x) {
          return ops::one_hot(s, indices, 3, x[0], x[1], axis);
        },
        {values({}), values({})});
}

TEST_CASE("partitions have gradients, if not all parts are used") {
  const Tensor parts = Tensor::vector<int32_t>({2, 0, 0, 2});
  check_squares(outputs_of("DynamicPartition", 0, {parts}, {0, 1, 2},
                           {{"num_partitions", 3}}),
                {values({4, 2})});
  check_squares(
      outputs_of("DynamicPartition", 0, {parts}, {2}, {{"num_partitions", 3}}),
      {values({4})});
  check_squares(outputs_of("DynamicPartition", 0,
                           {Tensor::of<int32_t>({2, 2}, {0, 0, 0, 0})}, {0},
                           {{"num_partitions", 1}}),
                {values({2, 2, 3})});
}

// --- Loops ------------------------------------------------------------------

TEST_CASE("array ops have gradients in loops, at places that change") {
  using Body = std::function<Output(const graph::Scope&, const Output& i,
                                    const Output& x)>;
  const auto repeat = [](const Body& body) -> Function {
    return [=](const graph::Scope& s, const graph::Outputs& x) {
      return graph::while_loop(
          s,
          [](const graph::Scope& in, const graph::Outputs& v) {
            return ops::less(in, v[0], 2);
          },
          [&](const graph::Scope& in,
              const graph::Outputs& v) -> graph::Outputs {
            return {ops::add(in, v[0], 1),
                    ops::square(in, body(in, v[0], v[1]))};
          },
          {0, x[0]},
          {.shape_invariants = {PartialShape::scalar(), PartialShape()}})[1];
    };
  };
  const auto check = [&](const Body& body, int line = __builtin_LINE()) {
    check_gradients(repeat(body), {values({3, 2}, 0.5, 1)}, {.tolerance = 1e-4},
                    line);
  };
  using graph::Scope;
  check([](const Scope& s, const Output& i, const Output& x) {
    return ops::gather(s, x, ops::pack(s, {i, 2, i}));
  });
  check([](const Scope& s, const Output& i, const Output& x) {
    return ops::gather(s, x, ops::pack(s, {i, 0}), 1);
  });
  check([](const Scope& s, const Output& i, const Output& x) {
    return ops::slice(s, x, ops::pack(s, {i, 0}), {-1, 2});
  });
  check([](const Scope& s, const Output& i, const Output& x) {
    return ops::reshape(s, ops::tile(s, x, ops::pack(s, {1, i})), {-1, 2});
  });
  check([](const Scope& s, const Output& i, const Output& x) {
    return ops::dynamic_stitch(s, {ops::pack(s, {2, i, i}), {1}},
                               {x, ops::slice(s, x, {0, 0}, {1, 2})});
  });
  check([](const Scope& s, const Output& i, const Output& x) -> Output {
    return s.op("TensorScatterUpdate",
                {x, ops::reshape(s, ops::pack(s, {i, 2, i}), {3, 1}), x});
  });
  check([](const Scope& s, const Output& i, const Output& x) {
    return ops::concat(s,
                       {x, ops::transpose(s, ops::transpose(s, x, {1, 0}),
                                          ops::pack(s, {1, 0}))},
                       ops::floor_mod(s, i, 1));
  });
  check([](const Scope& s, const Output& i, const Output& x) {
    return ops::concat(
        s, ops::dynamic_partition(s, x, ops::pack(s, {1, i, 0}), 2), 0);
  });
  check([](const Scope& s, const Output& i, const Output& x) {
    return ops::pad(s, x, ops::reshape(s, ops::pack(s, {i, 0, 0, i}), {2, 2}));
  });
}
