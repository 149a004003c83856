// Fuzzes the readers of what the control plane says. The first byte says which
// message it is. One that is accepted must have just these bytes when it is
// written.
#include <cstdlib>
#include <string_view>

#include "net/wire/control.h"

namespace {

using namespace tagflow::net;  // NOLINT: a fuzz target

template <class Message>
void check(std::string_view bytes) {
  const auto message = parse_control<Message>(bytes);
  if (!message.ok()) return;
  const auto again = control_bytes_of(*message);
  if (!again.ok() || *again != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  switch (data[0] % 3) {
    case 0:
      check<CatalogueEntry>(bytes);
      break;
    case 1:
      check<Catalogue>(bytes);
      break;
    default:
      check<Load>(bytes);
      break;
  }
  return 0;
}
