#include "devices/kernels/parsing/json_examples.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <string_view>

#include "graph/proto/example.pb.h"

namespace tagflow::devices {

namespace {

constexpr char kExampleType[] = "type.googleapis.com/tensorflow.Example";

// Whether a list in a text of JSON has null as an element. Texts in it may be
// in single quotes, too, as the library takes them.
bool has_null_in_list(std::string_view json) {
  std::string open;  // brackets
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '[' || c == '{') {
      open.push_back(c);
    } else if ((c == ']' || c == '}') && !open.empty()) {
      open.pop_back();
    } else if (c == '"' || c == '\'') {
      for (++at; at < json.size() && json[at] != c; ++at)
        if (json[at] == '\\') ++at;
    } else if (open.ends_with('[') && json.substr(at).starts_with("null")) {
      return true;
    }
  }
  return false;
}

// Behind white space; the library takes other values, too, for messages without
// fields.
bool is_object(std::string_view json) {
  const size_t first = json.find_first_not_of(" \t\r\n");
  return first != json.npos && json[first] == '{';
}

}  // namespace

JsonExamples::JsonExamples()
    : resolver_(google::protobuf::util::NewTypeResolverForDescriptorPool(
          "type.googleapis.com",
          tensorflow::Example::descriptor()->file()->pool())) {}

Result<std::string> JsonExamples::read(const std::string& text) const {
  if (!is_object(text)) return invalid_argument("it is not an object");
  std::string bytes;
  const auto status = google::protobuf::util::JsonToBinaryString(
      resolver_.get(), kExampleType, text, &bytes);
  if (!status.ok()) return invalid_argument("{}", status.ToString());
  if (has_null_in_list(text))
    return invalid_argument("a list has null as an element");
  return bytes;
}

}  // namespace tagflow::devices
