// Files of string tensors.
#include <nlohmann/json.hpp>

#include "apps/shared/io/json_tensor.h"
#include "graph/base64.h"

namespace tagflow::io {
namespace {

using Json = nlohmann::json;

Result<Shape> parse_shape(const Json& list) {
  if (!list.is_array()) {
    return invalid_argument("[string tensor] \"shape\" is not a list");
  }
  std::vector<int64_t> dims;
  for (const Json& dim : list) {
    if (!dim.is_number_integer() ||
        (dim.is_number_unsigned() &&
         dim.get<uint64_t>() > uint64_t(INT64_MAX))) {
      return invalid_argument(
          "[string tensor] \"shape\" has a dimension that is not an integer");
    }
    dims.push_back(dim.get<int64_t>());
  }
  return Shape::make(dims);
}

Result<Tensor> tensor_of(const Json& root) {
  if (!root.is_object()) {
    return invalid_argument("[string tensor] the text is not a JSON object");
  }
  for (const char* key : {"dtype", "shape", "base64"}) {
    if (!root.contains(key)) {
      return invalid_argument("[string tensor] there is no \"{}\"", key);
    }
  }
  if (root["dtype"] != "string") {
    return invalid_argument("[string tensor] \"dtype\" is not \"string\"");
  }
  TAGFLOW_ASSIGN(Shape shape, parse_shape(root["shape"]));
  const Json& values = root["base64"];
  if (!values.is_array() || int64_t(values.size()) != shape.num_elements()) {
    return invalid_argument(
        "[string tensor] \"base64\" is not a list of {} strings, as shape {} "
        "needs",
        shape.num_elements(), shape.to_string());
  }
  TAGFLOW_ASSIGN(Tensor tensor, Tensor::allocate(DataType::kString, shape));
  auto* out = tensor.mutable_data<std::string>();
  for (const Json& value : values) {
    if (!value.is_string()) {
      return invalid_argument(
          "[string tensor] \"base64\" has an element that is not a string");
    }
    TAGFLOW_ASSIGN(*out++, decode_base64(value.get_ref<const std::string&>()));
  }
  return tensor;
}

}  // namespace

Result<Tensor> parse_string_tensor(std::string_view text) {
  return tensor_of(Json::parse(text, nullptr, false));
}

Result<Tensor> parse_json_file(std::string_view text, DataType dtype) {
  // Does not try to parse other text, which is often a long list.
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != text.npos && text[start] == '{') {
    const Json root = Json::parse(text, nullptr, false);
    if (root.is_object() && root.contains("dtype")) return tensor_of(root);
  }
  return parse_json_literal(text, dtype);
}

std::string format_string_tensor(const Tensor& tensor) {
  Json root;
  root["dtype"] = "string";
  root["shape"] = Json::array();
  const Shape shape = tensor.shape();
  for (int64_t dim : shape.dims()) root["shape"].push_back(dim);
  root["base64"] = Json::array();
  for (const std::string& value : tensor.flat<std::string>()) {
    root["base64"].push_back(encode_base64(value));
  }
  return root.dump() + '\n';
}

}  // namespace tagflow::io
