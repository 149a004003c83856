// Fuzzes the reader of cluster files. An accepted file must stay the same when
// it is written and read again.
#include "net/config/cluster_file.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tagflow;  // NOLINT: a test
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = net::parse_cluster_file(text);
  if (!file.ok()) {
    if (!file.status().message().starts_with("[cluster_file] ")) std::abort();
    return 0;
  }
  const std::string written = net::format_cluster_file(*file);
  const auto again = net::parse_cluster_file(written);
  if (!again.ok() || again->tasks.size() != file->tasks.size() ||
      net::format_cluster_file(*again) != written)
    std::abort();
  return 0;
}
