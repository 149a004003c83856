// Values in strings of bytes, but for those of Examples.
#include "graph/op_registry.h"
#include "graph/ops/parsing_ops.h"
#include "graph/ops/shape_arithmetic.h"

namespace tagflow::graph {

namespace {

Status parse_tensor_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  return unknown_shape(c);
}

Status decode_padded_raw_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  int64_t width = kUnknown;
  if (const auto bytes = constant_index(c, 1)) {
    const auto size = int64_t(dtype_size(c.node().output_dtypes()[0]));
    if (*bytes <= 0)
      return c.fail(
          fmt::format("fixed_length must be positive, not {}", *bytes));
    if (*bytes % size != 0)
      return c.fail(fmt::format(
          "fixed_length must be a multiple of the {} bytes of an element, "
          "not {}",
          size, *bytes));
    width = *bytes / size;
  }
  c.set_output(0, concatenate(c.input(0), {width}));
  return {};
}

// A default is a scalar, or a vector of at most one element; each column has
// the shape of the records.
Status decode_csv_shape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    const PartialShape& value = c.input(i);
    if (value.has_rank() && value.rank() > 1)
      return c.fail(
          fmt::format("default {} must be a scalar or a vector, not {}", i - 1,
                      value.to_string()));
    if (value.has_rank() && value.rank() == 1 && value.dim(0) > 1)
      return c.fail(
          fmt::format("default {} must have at most one element, not {}", i - 1,
                      value.to_string()));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return {};
}

}  // namespace

void register_parsing_ops(OpRegistry& registry) {
  register_parsing_example_ops(registry);
  register_parsing_sequence_ops(registry);
  register_parsing_proto_ops(registry);
  registry.add(OpDefBuilder("ParseTensor")
                   .input("serialized: string")
                   .output("output: out_type")
                   .attr("out_type: type")
                   .shape(parse_tensor_shape));
  registry.add(OpDefBuilder("SerializeTensor")
                   .input("tensor: T")
                   .output("serialized: string")
                   .attr("T: type")
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("DecodePaddedRaw")
                   .inputs({"input_bytes: string", "fixed_length: int32"})
                   .output("output: out_type")
                   .attrs({"out_type: {half, float, double, int32, uint16, "
                           "uint8, int16, int8, int64, bfloat16}",
                           "little_endian: bool = true"})
                   .shape(decode_padded_raw_shape));
  registry.add(
      OpDefBuilder("DecodeCSV")
          .inputs({"records: string", "record_defaults: OUT_TYPE"})
          .output("output: OUT_TYPE")
          .attrs({"OUT_TYPE: list({float, double, int32, int64, "
                  "string}) >= 1",
                  "field_delim: string = ','", "use_quote_delim: bool = true",
                  "na_value: string = ''", "select_cols: list(int) = []"})
          .shape(decode_csv_shape));
  registry.add(OpDefBuilder("DecodeJSONExample")
                   .input("json_examples: string")
                   .output("binary_examples: string")
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("DecodeCompressed")
                   .input("bytes: string")
                   .output("output: string")
                   .attr("compression_type: string = ''")
                   .shape(unchanged_shape));
}

}  // namespace tagflow::graph
