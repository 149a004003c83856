#include "net/serving/json_examples.h"

#include <charconv>

#include "graph/fault.h"
#include "net/proto/serving/predict.pb.h"
#include "net/serving/json_reader.h"
#include "net/serving/json_tensor.h"

namespace tagflow::net::serving {
namespace {

using JsonKind = JsonReader::Kind;

Status add_number(JsonReader& json, tensorflow::Feature& feature) {
  TAGFLOW_ASSIGN(const std::string_view text, json.number());
  const char* const end = text.data() + text.size();
  int64_t integer = 0;
  const auto read = std::from_chars(text.data(), end, integer);
  const bool is_integer = read.ec == std::errc() && read.ptr == end;
  if (is_integer && !feature.has_float_list()) {
    feature.mutable_int64_list()->add_value(integer);
    return {};
  }
  if (feature.has_int64_list()) {
    // A float list takes the place of the other one.
    const auto integers = feature.int64_list().value();
    auto& floats = *feature.mutable_float_list()->mutable_value();
    floats.Assign(integers.begin(), integers.end());
  }
  float value = 0;
  TAGFLOW_RETURN_IF_ERROR(floating_of(json, text, value));
  feature.mutable_float_list()->add_value(value);
  return {};
}

Status add_value(JsonReader& json, tensorflow::Feature& feature) {
  const JsonKind kind = json.kind();
  const bool is_string = kind == JsonKind::kString || kind == JsonKind::kObject;
  const bool has_numbers = feature.has_int64_list() || feature.has_float_list();
  if (is_string ? has_numbers : feature.has_bytes_list())
    return json.error_here("a feature has numbers and strings,");
  if (!is_string) return add_number(json, feature);
  TAGFLOW_ASSIGN(
      *feature.mutable_bytes_list()->add_value(),
      kind == JsonKind::kString ? json.string() : read_binary_string(json));
  return {};
}

// A value, or a list of them.
Status read_feature(JsonReader& json, tensorflow::Feature& feature) {
  if (json.kind() != JsonKind::kArray) return add_value(json, feature);
  TAGFLOW_RETURN_IF_ERROR(json.begin_array());
  while (true) {
    TAGFLOW_ASSIGN(const bool is_value, json.next_element());
    if (!is_value) return {};
    TAGFLOW_RETURN_IF_ERROR(add_value(json, feature));
  }
}

Status read_example(JsonReader& json, tensorflow::Example* example) {
  TAGFLOW_RETURN_IF_ERROR(json.begin_object());
  std::string key;
  while (true) {
    TAGFLOW_ASSIGN(const bool is_one, json.next_key(key));
    if (!is_one) return {};
    auto& feature = (*example->mutable_features()->mutable_feature())[key];
    if (feature.kind_case() != tensorflow::Feature::KIND_NOT_SET)
      return json.error_here(
          fmt::format("an example has two features \"{}\"", key));
    Status read = read_feature(json, feature);
    if (!read.ok())
      return std::move(read).with_prefix(fmt::format("feature \"{}\": ", key));
  }
}

Status read_examples_body(std::string_view body, std::string& signature,
                          tensorflow::serving::Input* input) {
  JsonReader json(body);
  TAGFLOW_RETURN_IF_ERROR(json.begin_object());
  auto* const list = input->mutable_example_list_with_context();
  std::string key;
  while (true) {
    TAGFLOW_ASSIGN(const bool is_one, json.next_key(key));
    if (!is_one) return json.end();
    if (key == "signature_name") {
      TAGFLOW_ASSIGN(signature, json.string());
    } else if (key == "context") {
      TAGFLOW_RETURN_IF_ERROR(read_example(json, list->mutable_context()));
    } else if (key == "examples") {
      TAGFLOW_RETURN_IF_ERROR(json.begin_array());
      while (true) {
        TAGFLOW_ASSIGN(const bool is_example, json.next_element());
        if (!is_example) break;
        TAGFLOW_RETURN_IF_ERROR(read_example(json, list->add_examples()));
      }
    } else {
      TAGFLOW_RETURN_IF_ERROR(json.skip());
    }
  }
}

}  // namespace

Status read_json_examples(std::string_view body, std::string& signature,
                          tensorflow::serving::Input* input) {
  return guarded("json",
                 [&] { return read_examples_body(body, signature, input); });
}

std::string write_json_classes(
    const tensorflow::serving::ClassificationResult& result) {
  std::string text = "{\"results\": [";
  for (const auto& example : result.classifications()) {
    text += text.back() == '[' ? "[" : ", [";
    for (const auto& entry : example.classes()) {
      text += text.back() == '[' ? "[" : ", [";
      write_json_string(entry.label(), text);
      text += ", ";
      write_json_number(entry.score(), text);
      text += ']';
    }
    text += ']';
  }
  return text + "]}\n";
}

std::string write_json_values(
    const tensorflow::serving::RegressionResult& result) {
  std::string text = "{\"results\": [";
  for (const auto& entry : result.regressions()) {
    if (text.back() != '[') text += ", ";
    write_json_number(entry.value(), text);
  }
  return text + "]}\n";
}

}  // namespace tagflow::net::serving
