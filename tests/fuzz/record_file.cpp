// Fuzzes the reader of TFRecords. The first byte chooses the compression and
// the size of pieces. Records that can be read must be the same if they are
// written again.
#include "devices/files/record_file.h"

#include <cstdlib>

#include "tests/fuzz/memory_input.h"

namespace {

using namespace tagflow;              // NOLINT: a fuzz target
using namespace tagflow::checkpoint;  // NOLINT

// The records before the end, or before an error.
std::vector<std::string> read(std::string_view bytes, Compression compression,
                              size_t piece) {
  MemoryInput files;
  files.add("r", bytes);
  InputStream stream(*files.open("r"), compression, piece);
  std::vector<std::string> records;
  size_t total = 0;
  for (;;) {
    std::string_view data;
    const auto found = read_record(stream, data);
    if (!found.ok() || !*found) return records;
    total += data.size();
    // A few bytes can be expanded to many.
    if (total > size_t(1) << 24) return records;
    records.emplace_back(data);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Compression compressions[] = {Compression::kNone, Compression::kZlib,
                                      Compression::kGzip, Compression::kNone};
  const auto records = read({reinterpret_cast<const char*>(data) + 1, size - 1},
                            compressions[data[0] & 3], 512 << (data[0] >> 5));
  std::string again;
  for (const std::string& record : records) append_record(again, record);
  if (read(again, Compression::kNone, 512) != records) std::abort();
  return 0;
}
