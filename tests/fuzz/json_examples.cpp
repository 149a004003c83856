// Fuzzes Examples as JSON. An Example that was read is the same when protobuf
// writes it as JSON and it is read again.
#include "devices/kernels/parsing/json_examples.h"

#include <google/protobuf/util/json_util.h>

#include <cstdlib>
#include <string>

#include "graph/proto/example.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tagflow::devices::JsonExamples examples;
  const auto bytes = examples.read({reinterpret_cast<const char*>(data), size});
  if (!bytes.ok()) {
    if (bytes.status().message().empty()) std::abort();
    return 0;
  }
  tensorflow::Example first, second;
  if (!first.ParseFromString(*bytes)) std::abort();
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(first, &text).ok())
    return 0;  // a text that is not UTF-8
  const auto again = examples.read(text);
  if (!again.ok() || !second.ParseFromString(*again)) std::abort();
  std::string same;
  if (!google::protobuf::util::MessageToJsonString(second, &same).ok() ||
      same.size() != text.size())
    std::abort();
  return 0;
}
