// Fuzzes the reader of safetensors files. An accepted header must survive
// writing and reading again.
#include "devices/files/safetensors.h"

#include <cstdlib>

#include "tests/fuzz/memory_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tagflow::checkpoint;  // NOLINT: a fuzz target
  MemoryInput files;
  files.add("f", {reinterpret_cast<const char*>(data), size});
  const auto reader = SafetensorsReader::open("f", files);
  if (!reader.ok()) return 0;
  uint64_t bytes = 0;
  for (const SafetensorsEntry& entry : (*reader)->tensors()) {
    const auto tensor = (*reader)->read(entry.name);
    if (tensor.ok() != (entry.dtype() != tagflow::DataType::kInvalid))
      std::abort();
    bytes = entry.end;
  }
  const auto text = format_safetensors_header((*reader)->header());
  if (!text.ok()) std::abort();
  const auto again = parse_safetensors_header(*text, bytes);
  if (!again.ok() ||
      again->entries.size() != (*reader)->header().entries.size())
    std::abort();
  return 0;
}
