// Shape functions accept inputs of which nothing is known: so are those of a
// program that is read, before its edges are set.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "graph/op_registry.h"
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {
namespace {

// A value that the attribute may have; none for a list without a default.
std::optional<AttrValue> some_value(const AttrDef& attr) {
  if (attr.default_value) return attr.default_value;
  if (attr.type == "type")
    return attr.allowed_types.empty() ? DataType::kFloat
                                      : attr.allowed_types.front();
  if (attr.type == "int") return std::max<int64_t>(1, attr.minimum.value_or(1));
  if (attr.type == "float") return 1.f;
  if (attr.type == "bool") return false;
  if (attr.type == "shape") return PartialShape();
  if (attr.type == "string")
    return attr.allowed_strings.empty() ? std::string("x")
                                        : attr.allowed_strings.front();
  return std::nullopt;
}

// Whether the op could be tried. Inputs have the first shape and the second in
// turn.
bool try_op(const OpDef& op, const PartialShape& first,
            const PartialShape& second) {
  AttrMap attrs;
  for (const AttrDef& attr : op.attrs) {
    std::optional<AttrValue> value = some_value(attr);
    if (!value) return false;
    attrs[attr.name] = *std::move(value);
  }
  std::vector<InferInput> inputs;
  for (const ArgDef& arg : op.inputs) {
    if (arg.is_ref || !arg.type_list_attr.empty()) return false;
    const DataType dtype = arg.type_attr.empty()
                               ? arg.dtype
                               : *attrs.at(arg.type_attr).get_if<DataType>();
    const int64_t count = arg.number_attr.empty()
                              ? 1
                              : *attrs.at(arg.number_attr).get_if<int64_t>();
    for (int64_t i = 0; i < count; ++i)
      inputs.emplace_back(inputs.size() % 2 == 0 ? first : second, dtype);
  }
  // Only that it ends counts: some shapes are refused.
  const std::string text = infer(op.name, inputs, attrs);
  INFO(op.name, ": ", text);
  CHECK(!text.starts_with("Internal"));
  return true;
}

}  // namespace

TEST_CASE("each op's shapes are inferred from any known or unknown ranks") {
  std::vector<PartialShape> shapes{kUnknownShape};
  for (int rank = 0; rank <= 5; ++rank)
    shapes.push_back(PartialShape::of_rank(rank));
  int tried = 0;
  for (const std::string& name : OpRegistry::global().names()) {
    if (name.starts_with("Test")) continue;  // another test's
    const OpDef& op = **OpRegistry::global().find(name);
    for (const PartialShape& first : shapes)
      for (const PartialShape& second : shapes)
        tried += try_op(op, first, second) ? 1 : 0;
  }
  CHECK(tried > 3000);
}

}  // namespace tagflow::graph
