// Fields of protobuf messages.
#include "graph/ops/parsing_proto.h"

#include "graph/op_registry.h"
#include "graph/ops/file_use.h"
#include "graph/ops/parsing_ops.h"
#include "graph/ops/shape_arithmetic.h"

namespace tagflow::graph {

namespace {

bool reads_descriptors(const AttrMap& attrs) {
  return may_say(attrs, "descriptor_source", is_file_source);
}

Status same_number(ShapeContext& c, std::string_view types, size_t fields) {
  TAGFLOW_ASSIGN(const auto list, c.attr<std::vector<DataType>>(types));
  if (list.size() == fields) return {};
  return c.fail(
      fmt::format("{} field_names for {} {}", fields, list.size(), types));
}

Status decode_proto_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const auto names,
                 c.attr<std::vector<std::string>>("field_names"));
  TAGFLOW_RETURN_IF_ERROR(same_number(c, "output_types", names.size()));
  c.set_output(0, concatenate(c.input(0), {int64_t(names.size())}));
  for (int i = 1; i < c.num_outputs(); ++i)
    c.set_output(i, concatenate(c.input(0), {kUnknown}));
  return {};
}

// The sizes have a dimension for the fields, each value one for its elements.
Status encode_proto_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const auto names,
                 c.attr<std::vector<std::string>>("field_names"));
  TAGFLOW_RETURN_IF_ERROR(same_number(c, "Tinput_types", names.size()));
  const PartialShape& sizes = c.input(0);
  if (!sizes.has_rank()) return unknown_shape(c);
  if (sizes.rank() < 1) return c.fail("sizes must have one dimension at least");
  c.set_output(0, sub_shape(sizes, 0, sizes.rank() - 1));
  return {};
}

}  // namespace

void register_parsing_proto_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("DecodeProtoV2")
                   .input("bytes: string")
                   .outputs({"sizes: int32", "values: output_types"})
                   .attrs({"message_type: string", "field_names: list(string)",
                           "output_types: list(type) >= 0",
                           "descriptor_source: string = 'local://'",
                           "message_format: string = 'binary'",
                           "sanitize: bool = false"})
                   .shape(decode_proto_shape),
               reads_descriptors);
  registry.add(OpDefBuilder("EncodeProto")
                   .inputs({"sizes: int32", "values: Tinput_types"})
                   .output("bytes: string")
                   .attrs({"field_names: list(string)", "message_type: string",
                           "descriptor_source: string = 'local://'",
                           "Tinput_types: list(type) >= 1"})
                   .shape(encode_proto_shape),
               reads_descriptors);
}

}  // namespace tagflow::graph
