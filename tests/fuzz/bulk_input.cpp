// Fuzzes what puts the bytes of a bulk link into objects. The first byte says
// in pieces of how many bytes they come, and whether their frames are numbered
// and have right checksums, since nothing would pass by chance. An object that
// ends without an error has all of its bytes.
#include "net/link/bulk_input.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/fuzz/mend_frames.h"

namespace {

using namespace tagflow;       // NOLINT: a fuzz target
using namespace tagflow::net;  // NOLINT

constexpr uint64_t kMostBytes = uint64_t{1} << 20;

// How many bytes of `from` the parts take, at most `most`.
size_t scatter(std::string_view from, std::span<iovec> to, size_t most) {
  size_t count = 0;
  for (const iovec& part : to) {
    const size_t here =
        std::min({part.iov_len, from.size() - count, most - count});
    std::copy_n(from.data() + count, here, static_cast<char*>(part.iov_base));
    count += here;
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 != 0) mend_frames(bytes);
  const size_t piece = size_t{1} + data[0] / 2;

  std::map<ObjectId, std::shared_ptr<std::string>> open;
  BulkInput::Handlers handlers;
  handlers.on_begin =
      [&](const Begin& begin) -> Result<BulkInput::Destination> {
    // Some are refused, and some are dropped below.
    if (begin.bytes > kMostBytes || uint64_t(begin.object) % 8 == 7)
      return error(Code::kResourceExhausted, "no");
    const auto buffer = std::make_shared<std::string>(begin.bytes, '\0');
    if (!open.emplace(begin.object, buffer).second) std::abort();
    return BulkInput::Destination{*buffer, buffer};
  };
  handlers.on_end = [&](ObjectId object, const Status&) {
    if (open.erase(object) != 1) std::abort();
  };
  handlers.on_frame = [](const Frame&) { return Status(); };
  BulkInput input(std::move(handlers));
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const size_t count = scatter(rest, input.space(), piece);
    if (count == 0) std::abort();
    rest.remove_prefix(count);
    if (!input.add(count).ok()) break;
    if (rest.size() % 16 == 3 && !open.empty()) {
      input.drop(open.begin()->first);
      open.erase(open.begin());
    }
  }
  input.end_all(error(Code::kUnavailable, "over"));
  if (!open.empty()) std::abort();
  return 0;
}
