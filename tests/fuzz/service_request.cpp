// Fuzzes the reader of what a client asks of a master service. A request that
// is accepted must have just these bytes when it is written.
#include "net/wire/service_request.h"

#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto request = tagflow::net::parse_service_request(bytes);
  if (!request.ok()) return 0;
  const auto again = tagflow::net::bytes_of(*request);
  if (!again.ok() || *again != bytes) std::abort();
  return 0;
}
