// Ops on tensors of strings.
#include <algorithm>

#include "graph/ops/array_ops.h"
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
  define(registry, "StringJoin", {"inputs: N * string"}, {"output: string"},
         {"N: int >= 0", "separator: string = ''"}, string_join_shape);
  define(
      registry, "AsString", {"input: T"}, {"output: string"},
      {"T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "
       "half, uint32, uint64, complex64, complex128, bool, variant, string}",
       "precision: int = -1", "scientific: bool = false",
       "shortest: bool = false", "width: int = -1", "fill: string = ''"},
      unchanged_shape);
  define(registry, "StringFormat", {"inputs: T"}, {"output: string"},
         {"T: list(type) >= 0", "template: string = '%s'",
          "placeholder: string = '%s'", "summarize: int = 3"},
         scalar_shape);
  define(registry, "StringLength", {"input: string"}, {"output: int32"},
         {"unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"}, unchanged_shape);
  define(registry, "Substr", {"input: string", "pos: T", "len: T"},
         {"output: string"},
         {"T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"},
         substr_shape);
  define(registry, "StringUpper", {"input: string"}, {"output: string"},
         {"encoding: string = ''"}, unchanged_shape);
  define(registry, "StringLower", {"input: string"}, {"output: string"},
         {"encoding: string = ''"}, unchanged_shape);
  define(registry, "StringStrip", {"input: string"}, {"output: string"}, {},
         unchanged_shape);
  define(registry, "StringToNumber", {"string_tensor: string"},
         {"output: out_type"},
         {"out_type: {float, double, int32, int64, uint32, uint64} = float"},
         unchanged_shape);
  define(registry, "ReduceJoin", {"inputs: string", "reduction_indices: int32"},
         {"output: string"},
         {"keep_dims: bool = false", "separator: string = ''"},
         reduce_join_shape);
  define(registry, "DecodeRaw", {"bytes: string"}, {"output: out_type"},
         {"out_type: {half, float, double, int32, uint16, uint8, int16, int8, "
          "int64, complex64, complex128, bool, bfloat16}",
          "little_endian: bool = true"},
         decode_raw_shape);
  define(registry, "DecodeBase64", {"input: string"}, {"output: string"}, {},
         unchanged_shape);
  define(registry, "EncodeBase64", {"input: string"}, {"output: string"},
         {"pad: bool = false"}, unchanged_shape);
  define(registry, "StringSplit", {"input: string", "delimiter: string"},
         {"indices: int64", "values: string", "shape: int64"},
         {"skip_empty: bool = true"}, string_split_shape);
  define(registry, "StringSplitV2", {"input: string", "sep: string"},
         {"indices: int64", "values: string", "shape: int64"},
         {"maxsplit: int = -1"}, string_split_shape);
}

}  // namespace tagflow::graph
