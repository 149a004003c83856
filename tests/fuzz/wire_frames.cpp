// Fuzzes what cuts the bytes of a link into frames. The first byte says for
// which link, in pieces of how many bytes, and whether the frames are numbered
// and have right checksums, since nothing would pass by chance. A frame that is
// accepted must be one that this side would send.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "net/wire/frame.h"
#include "tests/fuzz/mend_frames.h"

namespace {

using namespace tagflow::net;  // NOLINT: a fuzz target

void check(const Frame& frame, std::string_view at, uint32_t number) {
  std::string again(kFrameHeader, '\0');
  again += frame.body;
  if (!begin_frame(frame.kind, again).ok()) std::abort();
  number_frame(again, number);
  if (!at.starts_with(again)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Purpose purpose = data[0] % 2 == 0 ? Purpose::kSmall : Purpose::kBulk;
  if (data[0] % 4 < 2) mend_frames(bytes);
  const size_t piece = size_t{1} + (data[0] >> 2);

  FrameInput input(purpose);
  std::string_view rest = bytes, taken = bytes;
  uint32_t number = 0;
  while (!rest.empty()) {
    const auto space = input.space();
    const size_t count = std::min({piece, rest.size(), space.size()});
    std::copy_n(rest.data(), count, space.data());
    rest.remove_prefix(count);
    input.add(count);
    while (true) {
      const auto frame = input.next();
      if (!frame.ok()) return 0;
      if (!*frame) break;
      check(**frame, taken, number++);
      taken.remove_prefix(kFrameHeader + (*frame)->body.size());
    }
  }
  return 0;
}
