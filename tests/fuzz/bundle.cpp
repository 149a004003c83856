// Fuzzes the reader of tensor bundles. The first two bytes are the length of
// the index, which follows; the rest is the only shard of data. If tensors can
// be read, writing and reading them again must give the same.
#include <cstdlib>
#include <map>

#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"
#include "tests/fuzz/memory_input.h"

namespace {

using namespace tagflow;              // NOLINT: a fuzz target
using namespace tagflow::checkpoint;  // NOLINT

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() < 2) return 0;
  const size_t index = data[0] | size_t(data[1]) << 8;
  bytes.remove_prefix(2);
  MemoryInput files;
  files.add("p.index", bytes.substr(0, index));
  files.add("p.data-00000-of-00001",
            bytes.substr(std::min(index, bytes.size())));
  const auto reader = BundleReader::open("p", files);
  if (!reader.ok()) return 0;
  static_cast<void>((*reader)->check_complete());
  for (const BundleEntry& entry : (*reader)->tensors()) {
    const auto tensor = (*reader)->read(entry.key);
    if (!tensor.ok()) continue;
    if (!(tensor->shape() == entry.shape)) std::abort();
    const auto part =
        (*reader)->read_slice(entry.key, whole_slice(entry.shape));
    if (!part.ok() || !identical(*part, *tensor)) std::abort();
  }
  return 0;
}
