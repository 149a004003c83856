#include "net/wire/frame.h"

#include <algorithm>
#include <cstring>

#include "devices/files/crc32c.h"

namespace tagflow::net {
namespace {

// The header's fields: kind, flags, two bytes of zero, length, sequence,
// checksum.
constexpr size_t kLengthAt = 4, kSequenceAt = 8, kChecksumAt = 12;
// A buffer that holds many frames of tokens; a longer frame makes it grow.
constexpr size_t kInputBytes = size_t{64} << 10;

void store(char* at, uint32_t value) { std::memcpy(at, &value, sizeof(value)); }

uint32_t load(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

std::string_view kind_name(FrameKind kind) {
  switch (kind) {
    case FrameKind::kRun:
      return "Run";
    case FrameKind::kDone:
      return "Done";
    case FrameKind::kAbort:
      return "Abort";
    case FrameKind::kTokens:
      return "Tokens";
    case FrameKind::kPull:
      return "Pull";
    case FrameKind::kCredit:
      return "Credit";
    case FrameKind::kPing:
      return "Ping";
    case FrameKind::kPong:
      return "Pong";
    case FrameKind::kReport:
      return "Report";
    case FrameKind::kAsk:
      return "Ask";
    case FrameKind::kBye:
      return "Bye";
    case FrameKind::kDevices:
      return "Devices";
    case FrameKind::kReset:
      return "Reset";
    case FrameKind::kReply:
      return "Reply";
    case FrameKind::kPairLost:
      return "PairLost";
    case FrameKind::kRelease:
      return "Release";
    case FrameKind::kDrain:
      return "Drain";
    case FrameKind::kLook:
      return "Look";
    case FrameKind::kSteer:
      return "Steer";
    case FrameKind::kSeen:
      return "Seen";
    case FrameKind::kBegin:
      return "Begin";
    case FrameKind::kChunk:
      return "Chunk";
    case FrameKind::kCancel:
      return "Cancel";
  }
  return {};
}

bool belongs_to(FrameKind kind, Purpose purpose) {
  switch (kind) {
    case FrameKind::kPing:
    case FrameKind::kPong:
    case FrameKind::kBye:
      return purpose != Purpose::kControl;
    case FrameKind::kBegin:
    case FrameKind::kChunk:
    case FrameKind::kCancel:
      return purpose == Purpose::kBulk;
    default:
      return purpose == Purpose::kSmall && !kind_name(kind).empty();
  }
}

Status begin_frame(FrameKind kind, std::string& frame, size_t rest) {
  const size_t length = frame.size() - kFrameHeader + rest;
  if (length > kLongestBody)
    return error(Code::kResourceExhausted,
                 "[net|{}] {} bytes are more than a frame has, which is {}",
                 kind_name(kind), length, kLongestBody);
  frame[0] = char(kind);
  frame[1] = frame[2] = frame[3] = 0;
  store(frame.data() + kLengthAt, uint32_t(length));
  return {};
}

void number_frame(std::span<char> frame, uint32_t sequence,
                  std::string_view rest) {
  store(frame.data() + kSequenceAt, sequence);
  const std::string_view bytes(frame.data(), frame.size());
  uint32_t checksum = header_checksum(bytes.substr(0, kFrameHeader));
  checksum = extend_checksum(checksum, bytes.substr(kFrameHeader));
  checksum = extend_checksum(checksum, rest);
  store(frame.data() + kChecksumAt, checksum);
}

Result<FrameHeader> read_frame_header(std::string_view bytes, Purpose purpose,
                                      uint32_t sequence) {
  const FrameHeader header{
      FrameKind(uint8_t(bytes[0])), load(bytes.data() + kLengthAt),
      load(bytes.data() + kSequenceAt), load(bytes.data() + kChecksumAt)};
  const auto wrong = [&]<class... Args>(fmt::format_string<Args...> format,
                                        Args&&... args) {
    return error(Code::kDataLoss, "[net|frame] frame {}: {}", sequence,
                 fmt::format(format, std::forward<Args>(args)...));
  };
  if (!belongs_to(header.kind, purpose))
    return wrong("its kind is {}, which this link does not carry",
                 int(uint8_t(bytes[0])));
  if (bytes[1] != 0 || bytes[2] != 0 || bytes[3] != 0)
    return wrong("bits are set that have no meaning");
  if (header.length > kLongestBody)
    return wrong("its {} bytes are more than {}", header.length, kLongestBody);
  if (header.sequence != sequence)
    return wrong("its number is {}", header.sequence);
  return header;
}

uint32_t header_checksum(std::string_view bytes) {
  return checkpoint::crc32c(bytes.substr(0, kChecksumAt));
}

uint32_t extend_checksum(uint32_t checksum, std::string_view body) {
  return checkpoint::extend_crc32c(checksum, body);
}

Status check_checksum(const FrameHeader& header, uint32_t checksum) {
  if (checksum == header.checksum) return {};
  return error(Code::kDataLoss,
               "[net|frame] frame {}, {} of {} bytes: the checksum is wrong",
               header.sequence, kind_name(header.kind), header.length);
}

FrameInput::FrameInput(Purpose purpose)
    : purpose_(purpose), buffer_(kInputBytes, '\0') {}

std::span<char> FrameInput::space() {
  const size_t kept = end_ - begin_;
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
    begin_ = 0;
    end_ = kept;
  }
  if (wanted_ > buffer_.size()) buffer_.resize(wanted_);
  // Full only after an error, when nothing is taken out any more.
  if (end_ == buffer_.size()) end_ = 0;
  return {buffer_.data() + end_, buffer_.size() - end_};
}

Result<std::optional<Frame>> FrameInput::next() {
  if (!status_.ok()) return status_;
  if (end_ - begin_ < wanted_) return std::optional<Frame>();
  const std::string_view bytes(buffer_.data() + begin_, end_ - begin_);
  const std::string_view head = bytes.substr(0, kFrameHeader);
  const auto header = read_frame_header(head, purpose_, sequence_);
  if (!header.ok()) return status_ = header.status();
  wanted_ = kFrameHeader + header->length;
  if (bytes.size() < wanted_) return std::optional<Frame>();
  const std::string_view body = bytes.substr(kFrameHeader, header->length);
  status_ =
      check_checksum(*header, extend_checksum(header_checksum(head), body));
  if (!status_.ok()) return status_;
  begin_ += wanted_;
  wanted_ = kFrameHeader;
  ++sequence_;
  return std::optional<Frame>(Frame{header->kind, body});
}

}  // namespace tagflow::net
