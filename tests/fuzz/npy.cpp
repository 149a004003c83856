// Fuzzes the reader of .npy files. An accepted file must survive writing and
// reading again.
#include "apps/shared/io/npy.h"

#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto tensor = tagflow::io::parse_npy(bytes);
  if (!tensor.ok()) return 0;
  const auto written = tagflow::io::format_npy(*tensor);
  if (!written.ok()) std::abort();
  const auto again = tagflow::io::parse_npy(*written);
  if (!again.ok() || !tagflow::identical(*again, *tensor)) std::abort();
  return 0;
}
