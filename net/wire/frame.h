// Frames: what every message of a link is wrapped in. docs/wire.md has the
// format.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::net {

// What a connection is for. The numbers are those of greetings.
enum class Purpose : uint8_t {
  kControl = 1,  // CAF's own format, not frames
  kSmall = 2,    // steps and tokens: short frames that must not wait
  kBulk = 3,     // objects, in chunks
};

// The numbers are those of the wire: a number is never used again.
enum class FrameKind : uint8_t {
  kRun = 1,
  kDone = 2,
  kAbort = 3,
  kTokens = 4,
  kPull = 5,
  kCredit = 6,
  kPing = 7,
  kPong = 8,
  kReport = 9,
  kAsk = 10,
  kBye = 11,
  kDevices = 12,
  kReset = 13,
  kReply = 14,
  kPairLost = 15,
  kRelease = 16,
  kDrain = 17,
  kLook = 18,
  kSteer = 19,
  kSeen = 20,
  kBegin = 32,
  kChunk = 33,
  kCancel = 34,
};

// "Tokens" for kTokens, and so on; empty for a number without a kind.
std::string_view kind_name(FrameKind kind);
// Whether frames of that kind travel on links of that purpose.
bool belongs_to(FrameKind kind, Purpose purpose);

// Bytes before each body.
inline constexpr size_t kFrameHeader = 16;
// The longest body, in bytes.
inline constexpr size_t kLongestBody = size_t{1} << 20;

struct FrameHeader {
  FrameKind kind;
  uint32_t length;    // of the body, in bytes
  uint32_t sequence;  // of the frame, in its direction of the link
  uint32_t checksum;  // CRC-32C of the header before it, and the body
};

// A frame that was received. The body lives as long as its input.
struct Frame {
  FrameKind kind;
  std::string_view body;
};

// Fills in the header of a frame, but for what number_frame() does. The first
// kFrameHeader bytes are space for it. Behind them is the body, of which `rest`
// more bytes follow elsewhere in memory. ResourceExhausted if the body is
// longer than kLongestBody.
Status begin_frame(FrameKind kind, std::string& frame, size_t rest = 0);
// Fills in the sequence number and the checksum of a frame that begin_frame()
// has accepted. `rest` is more of the body, which follows elsewhere in memory.
// REQUIRES: the length that the header has is that of the whole body.
void number_frame(std::span<char> frame, uint32_t sequence,
                  std::string_view rest = {});

// Reads a header. DataLoss if the kind does not belong to the purpose, if the
// body is longer than kLongestBody, if a bit that has no meaning is set, or if
// `sequence` was expected instead. REQUIRES: bytes.size() == kFrameHeader
Result<FrameHeader> read_frame_header(std::string_view bytes, Purpose purpose,
                                      uint32_t sequence);
// The checksum of the part of a header that it covers, to be extended by the
// body. REQUIRES: bytes.size() == kFrameHeader
uint32_t header_checksum(std::string_view bytes);
// Extends a checksum by a part of the body.
uint32_t extend_checksum(uint32_t checksum, std::string_view body);
// DataLoss naming the frame if `checksum` is not that of the header.
Status check_checksum(const FrameHeader& header, uint32_t checksum);

// Cuts the bytes of a link into frames:
//
//   size_t n = read(socket, input.space());
//   input.add(n);
//   while (a frame is in next()) handle it
//
// It keeps at most one frame that is not complete, and takes memory for a long
// one only once its header was accepted. Thread-compatible.
class FrameInput {
 public:
  explicit FrameInput(Purpose purpose);

  // Where the next bytes go; never empty. What next() gave becomes invalid.
  // REQUIRES: next() has just given nothing, or an error.
  std::span<char> space();
  // So many bytes are now in space(). REQUIRES: count <= space().size()
  void add(size_t count) { end_ += count; }
  // The next complete frame, or nothing until more bytes are added. DataLoss if
  // the peer broke the format, and then again for ever.
  Result<std::optional<Frame>> next();

 private:
  Purpose purpose_;
  std::string buffer_;
  size_t begin_ = 0;  // of what was added, but not given out
  size_t end_ = 0;
  size_t wanted_ = kFrameHeader;  // bytes of the frame that begins at begin_
  uint32_t sequence_ = 0;
  Status status_;
};

}  // namespace tagflow::net
