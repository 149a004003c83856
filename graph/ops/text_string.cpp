// Ops on tensors of strings.
#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"
#include "graph/ops/text_ops.h"

namespace tagflow::graph {

namespace {

// All inputs have one shape, or are scalars.
Status string_join_shape(ShapeContext& c) {
  PartialShape output = PartialShape::scalar();
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& input = c.input(i);
    if (!input.has_rank()) return unknown_shape(c);
    if (input.rank() == 0) continue;
    if (output.rank() == 0) {
      output = input;
      continue;
    }
    auto merged = output.merge(input);
    if (!merged.ok())
      return c.fail(fmt::format("shapes of inputs differ: {} and {}",
                                output.to_string(), input.to_string()));
    output = std::move(*merged);
  }
  c.set_output(0, std::move(output));
  return {};
}

Status substr_shape(ShapeContext& c) {
  auto positions = c.input(1).merge(c.input(2));
  if (!positions.ok())
    return c.fail(fmt::format("pos {} and len {} differ",
                              c.input(1).to_string(), c.input(2).to_string()));
  return broadcast_shape(c);
}

Status reduce_join_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (c.input(1).has_rank() && c.input(1).rank() > 1)
    return c.fail(fmt::format("reduction_indices is {}, not a vector",
                              c.input(1).to_string()));
  TAGFLOW_ASSIGN(const bool keep, c.attr<bool>("keep_dims"));
  const auto axes = constant_indices(c, 1);
  if (!input.has_rank() || !axes) return unknown_shape(c);
  // Without axes, all dimensions are joined.
  std::vector<bool> joined(size_t(input.rank()), axes->empty());
  for (int64_t axis : *axes) {
    TAGFLOW_ASSIGN(const int at, shape_axis(c, axis, input.rank()));
    joined[size_t(at)] = true;
  }
  PartialShape output = PartialShape::scalar();
  for (int i = 0; i < input.rank(); ++i) {
    if (!joined[size_t(i)]) {
      output.add_dim(input.dim(i));
    } else if (keep) {
      output.add_dim(1);
    }
  }
  c.set_output(0, std::move(output));
  return {};
}

Status decode_raw_shape(ShapeContext& c) {
  c.set_output(0, concatenate(c.input(0), {PartialShape::kUnknown}));
  return {};
}

// The parts of strings in a list, as a sparse matrix.
Status string_split_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  c.set_output(0, {PartialShape::kUnknown, 2});
  c.set_output(1, {PartialShape::kUnknown});
  c.set_output(2, {2});
  return {};
}

}  // namespace

void register_text_string_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("StringJoin")
                   .input("inputs: N * string")
                   .output("output: string")
                   .attrs({"N: int >= 0", "separator: string = ''"})
                   .shape(string_join_shape));
  registry.add(OpDefBuilder("AsString")
                   .input("input: T")
                   .output("output: string")
                   .attrs({"T: {float, double, int32, uint8, int16, int8, "
                           "int64, bfloat16, uint16, "
                           "half, uint32, uint64, complex64, complex128, bool, "
                           "variant, string}",
                           "precision: int = -1", "scientific: bool = false",
                           "shortest: bool = false", "width: int = -1",
                           "fill: string = ''"})
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("StringFormat")
                   .input("inputs: T")
                   .output("output: string")
                   .attrs({"T: list(type) >= 0", "template: string = '%s'",
                           "placeholder: string = '%s'", "summarize: int = 3"})
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("StringLength")
                   .input("input: string")
                   .output("output: int32")
                   .attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
                   .shape(unchanged_shape));
  registry.add(
      OpDefBuilder("Substr")
          .inputs({"input: string", "pos: T", "len: T"})
          .output("output: string")
          .attrs({"T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"})
          .shape(substr_shape));
  registry.add(OpDefBuilder("StringUpper")
                   .input("input: string")
                   .output("output: string")
                   .attr("encoding: string = ''")
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("StringLower")
                   .input("input: string")
                   .output("output: string")
                   .attr("encoding: string = ''")
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("StringStrip")
                   .input("input: string")
                   .output("output: string")
                   .shape(unchanged_shape));
  registry.add(
      OpDefBuilder("StringToNumber")
          .input("string_tensor: string")
          .output("output: out_type")
          .attr(
              "out_type: {float, double, int32, int64, uint32, uint64} = float")
          .shape(unchanged_shape));
  registry.add(OpDefBuilder("ReduceJoin")
                   .inputs({"inputs: string", "reduction_indices: int32"})
                   .output("output: string")
                   .attrs({"keep_dims: bool = false", "separator: string = ''"})
                   .shape(reduce_join_shape));
  registry.add(OpDefBuilder("DecodeRaw")
                   .input("bytes: string")
                   .output("output: out_type")
                   .attrs({"out_type: {half, float, double, int32, uint16, "
                           "uint8, int16, int8, "
                           "int64, complex64, complex128, bool, bfloat16}",
                           "little_endian: bool = true"})
                   .shape(decode_raw_shape));
  registry.add(OpDefBuilder("DecodeBase64")
                   .input("input: string")
                   .output("output: string")
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("EncodeBase64")
                   .input("input: string")
                   .output("output: string")
                   .attr("pad: bool = false")
                   .shape(unchanged_shape));
  registry.add(
      OpDefBuilder("StringSplit")
          .inputs({"input: string", "delimiter: string"})
          .outputs({"indices: int64", "values: string", "shape: int64"})
          .attr("skip_empty: bool = true")
          .shape(string_split_shape));
  registry.add(
      OpDefBuilder("StringSplitV2")
          .inputs({"input: string", "sep: string"})
          .outputs({"indices: int64", "values: string", "shape: int64"})
          .attr("maxsplit: int = -1")
          .shape(string_split_shape));
}

}  // namespace tagflow::graph
