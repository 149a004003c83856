// Fuzzes the reader of case.json, and the literals and string tensors that
// share its JSON.
#include <cstdlib>
#include <string_view>

#include "apps/shared/io/json_tensor.h"
#include "apps/tagflow/conform/case.h"

namespace {

using namespace tagflow;  // NOLINT: a test

// A literal that is accepted must survive writing and reading again.
void check_literal(std::string_view text, DataType dtype) {
  const auto tensor = io::parse_json_literal(text, dtype);
  if (!tensor.ok()) return;
  const std::string written = io::format_json_literal(*tensor);
  const auto again = io::parse_json_literal(written, dtype);
  if (!again.ok()) std::abort();
  // Twice, since NaN is not identical to itself as text.
  if (io::format_json_literal(*again) != written) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = apps::parse_case(text);
  if (parsed.ok()) {
    for (const auto& run : parsed->runs) {
      for (const auto& [port, file] : run.feeds) {
        if (file.find('/') != std::string::npos) std::abort();
      }
    }
  }
  const auto strings = io::parse_string_tensor(text);
  if (strings.ok() &&
      !io::parse_string_tensor(io::format_string_tensor(*strings)).ok()) {
    std::abort();
  }
  for (DataType dtype : {DataType::kFloat, DataType::kInt8, DataType::kBool,
                         DataType::kComplex64, DataType::kString}) {
    check_literal(text, dtype);
  }
  return 0;
}
