// Fuzzes the reader of databases of LMDB: all records together are no longer
// than the file, and the end stays the end.
#include <cstdlib>

#include "devices/files/lmdb_file.h"
#include "tests/fuzz/memory_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tagflow::checkpoint;  // NOLINT: a fuzz target
  MemoryInput files;
  files.add("f", {reinterpret_cast<const char*>(data), size});
  auto file = LmdbFile::open(*files.open("f"));
  if (!file.ok()) return 0;
  size_t bytes = 0;
  for (;;) {
    std::string key, value;
    const auto found = file->next(key, value);
    if (!found.ok()) return 0;
    if (!*found) break;
    bytes += key.size() + value.size();
    if (key.empty() || bytes > size) std::abort();
  }
  std::string key, value;
  const auto again = file->next(key, value);
  if (!again.ok() || *again) std::abort();
  return 0;
}
