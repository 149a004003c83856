// Fuzzes the reader of a worker's trace, and what a master does with it.
#include "net/transfer/trace_bytes.h"

#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

using namespace tagflow;  // NOLINT: a fuzz target

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto part = net::parse_trace({reinterpret_cast<const char*>(data), size});
  if (!part.ok()) return 0;
  actors::Trace trace(1);
  // Its start is a time of this process by then.
  part->start = std::chrono::steady_clock::now();
  trace.add_part("a", std::move(*part));
  for (const auto& track : trace.tracks()) {
    int64_t last = 0;
    for (const actors::TraceEvent& event : track) {
      if (event.begin < last || event.end < event.begin) std::abort();
      if ((event.node == nullptr) != (event.kind == event.kActivity))
        std::abort();
      last = event.begin;
    }
  }
  return 0;
}
