// Fuzzes what clients of a model server send: bodies of JSON, and paths. What
// is read is written, and read again as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/proto/serving/predict.pb.h"
#include "net/serving/json_examples.h"
#include "net/serving/json_predict.h"
#include "net/serving/rest_path.h"

namespace {

using namespace tagflow;
using namespace tagflow::net::serving;

ServedSignature signature_of(DataType dtype) {
  ServedSignature signature;
  signature.inputs["x"] = {"x:0", dtype, PartialShape()};
  signature.inputs["s"] = {"s:0", DataType::kString, PartialShape()};
  return signature;
}

Result<JsonPredict> read(std::string_view body,
                         const ServedSignature& signature) {
  return read_json_predict(body, [&](const std::string&) {
    return Result<const ServedSignature*>(&signature);
  });
}

void check(std::string_view body, DataType dtype) {
  const ServedSignature signature = signature_of(dtype);
  const auto first = read(body, signature);
  if (!first.ok() || first->inputs.size() != 2) return;
  auto text = write_json_predict(first->inputs, false);
  if (!text.ok()) std::abort();
  // {"outputs": {...}} has the form of {"inputs": {...}}.
  text->replace(0, 11, "{\"inputs\":");
  const auto second = read(*text, signature);
  if (!second.ok()) std::abort();
  for (const auto& [name, value] : first->inputs) {
    const Tensor& again = second->inputs.at(name);
    if (value.dtype() != again.dtype() || !(value.shape() == again.shape()))
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const DataType dtype :
       {DataType::kFloat, DataType::kInt8, DataType::kBool, DataType::kHalf})
    check(text, dtype);
  std::string name;
  tensorflow::serving::Input input;
  if (read_json_examples(text, name, &input).ok())
    if (input.SerializeAsString().empty() && !input.has_example_list() &&
        !input.has_example_list_with_context())
      std::abort();
  static_cast<void>(parse_rest_path(text));
  return 0;
}
