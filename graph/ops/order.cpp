// Ops that compare elements to order or find them: Unique, ListDiff, TopK,
// LowerBound, Bucketize, NthElement, ...
#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"

namespace tagflow::graph {

namespace {

Status unique_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape vector, c.with_rank(0, 1));
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, {PartialShape::kUnknown});
  c.set_output(1, std::move(vector));
  return {};
}

Status unique_v2_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  for (int i = 1; i < c.num_outputs(); ++i)
    c.set_output(i, {PartialShape::kUnknown});
  if (input.has_rank()) c.set_output(0, PartialShape::of_rank(input.rank()));
  return {};
}

Status list_diff_shape(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) {
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
    c.set_output(i, {PartialShape::kUnknown});
  }
  return {};
}

Status top_k_of(ShapeContext& c, int64_t k) {
  TAGFLOW_ASSIGN(PartialShape output, c.with_rank_at_least(0, 1));
  if (!c.input(0).has_rank()) return unknown_shape(c);
  const int last = output.rank() - 1;
  if (output.dim_known(last) && k > output.dim(last))
    return c.fail(
        fmt::format("{} has fewer than k = {} columns", output.to_string(), k));
  output.set_dim(last, k);
  c.set_output(0, output);
  c.set_output(1, std::move(output));
  return {};
}

Status top_k_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t k, c.attr<int64_t>("k"));
  return top_k_of(c, k);
}

Status top_k_v2_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  const auto k = constant_index(c, 1);
  if (k && *k < 0) return c.fail(fmt::format("k = {} is negative", *k));
  return top_k_of(c, k.value_or(PartialShape::kUnknown));
}

Status bound_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 2).status());
  TAGFLOW_ASSIGN(PartialShape values, c.with_rank(1, 2));
  c.set_output(0, std::move(values));
  return {};
}

Status nth_element_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape input, c.with_rank_at_least(0, 1));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  if (!input.has_rank()) return unknown_shape(c);
  const int last = input.rank() - 1;
  if (const auto n = constant_index(c, 1);
      n && (*n < 0 || (input.dim_known(last) && *n >= input.dim(last))))
    return c.fail(fmt::format("n {} is outside the last dimension of {}", *n,
                              input.to_string()));
  c.set_output(0, sub_shape(input, 0, last));
  return {};
}

Status in_top_k_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape predictions, c.with_rank(0, 2));
  TAGFLOW_ASSIGN(const PartialShape targets, c.with_rank(1, 1));
  if (c.num_inputs() == 3) TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 0).status());
  Result<PartialShape> batch =
      PartialShape({predictions.dim(0)}).merge(targets);
  if (!batch.ok())
    return c.fail(fmt::format("{} targets for predictions {}",
                              targets.to_string(), predictions.to_string()));
  c.set_output(0, std::move(batch).value());
  return Status();
}

}  // namespace

void register_order_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("Unique")
                   .input("x: T")
                   .outputs({"y: T", "idx: out_idx"})
                   .attrs({"T: type", "out_idx: {int32, int64} = int32"})
                   .shape(unique_shape)
                   .work(Work::kSort));
  registry.add(OpDefBuilder("UniqueV2")
                   .inputs({"x: T", "axis: Taxis"})
                   .outputs({"y: T", "idx: out_idx"})
                   .attrs({"T: type", "Taxis: {int32, int64} = int64",
                           "out_idx: {int32, int64} = int32"})
                   .shape(unique_v2_shape)
                   .work(Work::kSort));
  registry.add(OpDefBuilder("UniqueWithCounts")
                   .input("x: T")
                   .outputs({"y: T", "idx: out_idx", "count: out_idx"})
                   .attrs({"T: type", "out_idx: {int32, int64} = int32"})
                   .shape(unique_shape)
                   .work(Work::kSort));
  registry.add(OpDefBuilder("UniqueWithCountsV2")
                   .inputs({"x: T", "axis: Taxis"})
                   .outputs({"y: T", "idx: out_idx", "count: out_idx"})
                   .attrs({"T: type", "Taxis: {int32, int64} = int64",
                           "out_idx: {int32, int64} = int32"})
                   .shape(unique_v2_shape)
                   .work(Work::kSort));
  registry.add(OpDefBuilder("ListDiff")
                   .inputs({"x: T", "y: T"})
                   .outputs({"out: T", "idx: out_idx"})
                   .attrs({"T: type", "out_idx: {int32, int64} = int32"})
                   .shape(list_diff_shape)
                   .work(Work::kSort));
  registry.add(OpDefBuilder("TopKV2")
                   .inputs({"input: T", "k: Tk"})
                   .outputs({"values: T", "indices: index_type"})
                   .attrs({"sorted: bool = true", "T: realnumbertype",
                           "Tk: {int16, int32, int64} = int32",
                           "index_type: {int16, int32, int64} = int32"})
                   .shape(top_k_v2_shape)
                   .work(Work::kSort));
  registry.add(
      OpDefBuilder("TopK")
          .input("input: T")
          .outputs({"values: T", "indices: int32"})
          .attrs({"k: int >= 0", "sorted: bool = true", "T: realnumbertype"})
          .shape(top_k_shape)
          .work(Work::kSort));
  registry.add(OpDefBuilder("LowerBound")
                   .inputs({"sorted_inputs: T", "values: T"})
                   .output("output: out_type")
                   .attrs({"T: type", "out_type: {int32, int64} = int32"})
                   .shape(bound_shape)
                   .work(Work::kSort));
  registry.add(OpDefBuilder("UpperBound")
                   .inputs({"sorted_inputs: T", "values: T"})
                   .output("output: out_type")
                   .attrs({"T: type", "out_type: {int32, int64} = int32"})
                   .shape(bound_shape)
                   .work(Work::kSort));
  registry.add(OpDefBuilder("Bucketize")
                   .input("input: T")
                   .output("output: int32")
                   .attrs({"T: {int32, int64, float, double}",
                           "boundaries: list(float)"})
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("NthElement")
                   .inputs({"input: T", "n: int32"})
                   .output("values: T")
                   .attrs({"reverse: bool = false", "T: realnumbertype"})
                   .shape(nth_element_shape));
  registry.add(OpDefBuilder("InTopK")
                   .inputs({"predictions: float", "targets: T"})
                   .output("precision: bool")
                   .attrs({"k: int", "T: {int32, int64} = int32"})
                   .shape(in_top_k_shape)
                   .work(Work::kSort));
  registry.add(OpDefBuilder("InTopKV2")
                   .inputs({"predictions: float", "targets: T", "k: T"})
                   .output("precision: bool")
                   .attr("T: {int32, int64} = int32")
                   .shape(in_top_k_shape)
                   .work(Work::kSort));
}

}  // namespace tagflow::graph
