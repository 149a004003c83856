// Fuzzes both sides of the hello with a peer that does not know the secret. The
// first byte chooses the side, and whether the versions are those that it sends
// or ours, so that a seed stays one; the rest is what the peer sends. No bytes
// are a proof, and a greeting that is accepted must be written as it was read.
#include "net/link/hello.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace tagflow;       // NOLINT: a fuzz target
using namespace tagflow::net;  // NOLINT

void check_greeting(std::string_view bytes) {
  const auto greeting = Greeting::read(bytes);
  if (!greeting.ok()) return;
  const auto again = greeting->write();
  if (!again.ok() || *again != bytes) std::abort();
}

void set_versions(std::string& greeting) {
  for (const size_t at : {8, 10}) {
    greeting[at] = char(kWireVersion % 256);
    greeting[at + 1] = char(kWireVersion / 256);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] / 2 % 2 == 0 && bytes.size() >= Greeting::kBytes)
    set_versions(bytes);
  std::string_view rest = bytes;
  Identity identity;
  identity.task = {"worker", 1};
  identity.incarnation = 7;
  identity.secret = "a secret";
  auto hello = data[0] % 2 == 0
                   ? Hello::connector(identity, Purpose::kSmall)
                   : Hello::acceptor(identity, [](const Greeting&) -> Status {
                       std::abort();  // nobody has proved anything
                     });
  if (!hello.ok()) std::abort();
  if (rest.size() >= Greeting::kBytes)
    check_greeting(rest.substr(0, Greeting::kBytes));
  while (hello->wanted() != 0 && rest.size() >= hello->wanted()) {
    const std::string_view frame = rest.substr(0, hello->wanted());
    rest.remove_prefix(frame.size());
    if (!hello->take(frame).ok()) return 0;
  }
  if (hello->wanted() == 0 && hello->refusal().ok()) std::abort();
  return 0;
}
