#include "net/wire/frame.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "net/wire/messages.h"
#include "tests/net/wire/hex.h"

namespace tagflow::net {
namespace {

std::string numbered(FrameKind kind, std::string_view body, uint32_t number) {
  std::string frame(kFrameHeader, '\0');
  frame += body;
  CHECK(begin_frame(kind, frame).ok());
  number_frame(frame, number);
  return frame;
}

// All that a fresh input takes out of the bytes, given in pieces of `piece`.
// Ends with the error if there is one.
struct Taken {
  std::vector<std::string> bodies;
  Status status;
};
Taken take(std::string_view bytes, size_t piece,
           Purpose purpose = Purpose::kSmall) {
  FrameInput input(purpose);
  Taken taken;
  while (!bytes.empty()) {
    const auto space = input.space();
    const size_t count = std::min({piece, bytes.size(), space.size()});
    std::copy_n(bytes.data(), count, space.data());
    bytes.remove_prefix(count);
    input.add(count);
    while (true) {
      auto frame = input.next();
      if (!frame.ok()) {
        taken.status = frame.status();
        return taken;
      }
      if (!*frame) break;
      taken.bodies.emplace_back((*frame)->body);
    }
  }
  return taken;
}

// The error of a frame some of whose header was changed; its checksum fits.
std::string error_of(size_t at, char value) {
  std::string frame = numbered(FrameKind::kCredit, "\x05", 0);
  frame[at] = value;
  const auto text = std::string_view(frame);
  const uint32_t checksum = extend_checksum(
      header_checksum(text.substr(0, kFrameHeader)), text.substr(kFrameHeader));
  for (int i = 0; i < 4; ++i) frame[12 + i] = char(checksum >> (8 * i));
  return std::string(take(frame, frame.size()).status.message());
}

TEST_CASE("a frame has the bytes that docs/wire.md explains") {
  auto frame = frame_of(Credit{4096});
  REQUIRE(frame.ok());
  number_frame(*frame, 7);
  CHECK(hex(*frame) == "06 00 00 00 02 00 00 00 07 00 00 00 a5 b7 e3 45 80 20");
}

TEST_CASE("frames are taken out as they were put in, however they arrive") {
  std::mt19937 random(1);
  std::string bytes;
  std::vector<std::string> bodies;
  for (uint32_t i = 0; i < 40; ++i) {
    bodies.emplace_back(i == 20 ? kLongestBody : random() % 300, char(i));
    bytes += numbered(FrameKind::kTokens, bodies.back(), i);
  }
  for (size_t piece : {size_t{1}, size_t{7}, size_t{1000}, bytes.size()}) {
    const Taken taken = take(bytes, piece);
    CHECK(taken.status.ok());
    CHECK(taken.bodies == bodies);
  }
}

TEST_CASE("a header that breaks the format is refused by name") {
  CHECK(error_of(0, 0) ==
        "[net|frame] frame 0: its kind is 0, which this link does not carry");
  CHECK(error_of(0, 33) ==
        "[net|frame] frame 0: its kind is 33, which this link does not carry");
  CHECK(error_of(0, char(200)).find("its kind is 200") != std::string::npos);
  for (size_t at : {1, 2, 3})
    CHECK(error_of(at, 1) ==
          "[net|frame] frame 0: bits are set that have no meaning");
  CHECK(error_of(7, char(0xff)) ==
        "[net|frame] frame 0: its 4278190081 bytes are more than 1048576");
  CHECK(error_of(8, 1) == "[net|frame] frame 0: its number is 1");
}

TEST_CASE("a frame that is lost, doubled or changed ends the input for good") {
  const auto frame = [](uint32_t number) {
    return numbered(FrameKind::kCredit, "\x05", number);
  };
  const Taken lost = take(frame(0) + frame(2), 1000);
  CHECK(lost.bodies.size() == 1);
  CHECK(lost.status.message() == "[net|frame] frame 1: its number is 2");
  CHECK(lost.status.code() == Code::kDataLoss);
  CHECK(take(frame(0) + frame(0), 1000).status.message() ==
        "[net|frame] frame 1: its number is 0");

  const std::string whole = frame(0);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole + frame(1);
      changed[at] = char(changed[at] ^ (1 << bit));
      CAPTURE(at);
      CAPTURE(bit);
      const Taken taken = take(changed, 1000);
      CHECK(taken.bodies.empty());
      // A longer length may want bytes that are not there.
      CHECK((!taken.status.ok() || (at >= 4 && at < 8)));
    }
  }

  FrameInput input(Purpose::kSmall);
  std::copy_n("garbage garbage ", 16, input.space().data());
  input.add(16);
  CHECK_FALSE(input.next().ok());
  for (int i = 0; i < 10'000; ++i) input.add(input.space().size());
  CHECK_FALSE(input.next().ok());
}

TEST_CASE("memory for a long frame is taken once its header was accepted") {
  std::string giant = numbered(FrameKind::kRun, "", 0);
  giant[7] = 0x7f;
  FrameInput input(Purpose::kSmall);
  const size_t before = input.space().size();
  std::copy(giant.begin(), giant.end(), input.space().data());
  input.add(giant.size());
  CHECK_FALSE(input.next().ok());
  CHECK(input.space().size() <= before);
}

TEST_CASE("each purpose of a link carries its own kinds") {
  for (int number = 0; number < 256; ++number) {
    const auto kind = FrameKind(number);
    CAPTURE(number);
    CHECK_FALSE(belongs_to(kind, Purpose::kControl));
    const bool is_any =
        belongs_to(kind, Purpose::kSmall) || belongs_to(kind, Purpose::kBulk);
    CHECK(is_any == !kind_name(kind).empty());
  }
  CHECK(belongs_to(FrameKind::kPing, Purpose::kSmall));
  CHECK(belongs_to(FrameKind::kPing, Purpose::kBulk));
  CHECK_FALSE(belongs_to(FrameKind::kTokens, Purpose::kBulk));
  CHECK_FALSE(belongs_to(FrameKind::kChunk, Purpose::kSmall));
}

TEST_CASE("a body that is too long is refused before it is sent") {
  std::string frame(kFrameHeader + kLongestBody + 1, 'x');
  const Status status = begin_frame(FrameKind::kRun, frame);
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(status.message() ==
        "[net|Run] 1048577 bytes are more than a frame has, which is 1048576");
}

TEST_CASE("a body in two places has the checksum of the whole") {
  std::string whole = numbered(FrameKind::kChunk, "abcdefgh", 3);
  std::string head = whole.substr(0, kFrameHeader + 2);
  number_frame(head, 3, "cdefgh");
  CHECK(hex(head) == hex(whole.substr(0, head.size())));
}

}  // namespace
}  // namespace tagflow::net
