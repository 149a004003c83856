// Fuzzes the readers of messages. The first byte is the kind of a frame, or
// anything else for a Register. A message that is accepted must have just these
// bytes when it is written.
#include <cstdlib>
#include <string_view>

#include "net/wire/messages.h"
#include "net/wire/view_messages.h"

namespace {

using namespace tagflow::net;  // NOLINT: a fuzz target

constexpr uint64_t kBudget = uint64_t{4} << 20;

template <class Message>
void check(std::string_view body) {
  const auto message = parse_body<Message>(body, kBudget);
  if (!message.ok()) return;
  const auto frame = frame_of(*message);
  if (!frame.ok() || frame->substr(kFrameHeader) != body) std::abort();
}

void check_register(std::string_view bytes) {
  const auto registration = parse_register(bytes);
  if (!registration.ok()) return;
  const auto again = bytes_of(*registration);
  if (!again.ok() || *again != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  switch (FrameKind(data[0])) {
    case FrameKind::kRun:
      check<Run>(body);
      break;
    case FrameKind::kDone:
      check<Done>(body);
      break;
    case FrameKind::kAbort:
      check<Abort>(body);
      break;
    case FrameKind::kTokens:
      check<Tokens>(body);
      break;
    case FrameKind::kPull:
      check<Pull>(body);
      break;
    case FrameKind::kCredit:
      check<Credit>(body);
      break;
    case FrameKind::kPing:
      check<Ping>(body);
      break;
    case FrameKind::kPong:
      check<Pong>(body);
      break;
    case FrameKind::kReport:
      check<Report>(body);
      break;
    case FrameKind::kPairLost:
      check<PairLost>(body);
      break;
    case FrameKind::kAsk:
      check<Ask>(body);
      break;
    case FrameKind::kBye:
      check<Bye>(body);
      break;
    case FrameKind::kDevices:
      check<Devices>(body);
      break;
    case FrameKind::kReset:
      check<Reset>(body);
      break;
    case FrameKind::kRelease:
      check<Release>(body);
      break;
    case FrameKind::kDrain:
      check<Drain>(body);
      break;
    case FrameKind::kLook:
      check<Look>(body);
      break;
    case FrameKind::kSteer:
      check<Steer>(body);
      break;
    case FrameKind::kSeen:
      check<Seen>(body);
      break;
    case FrameKind::kReply:
      check<Reply>(body);
      break;
    case FrameKind::kBegin:
      check<Begin>(body);
      break;
    case FrameKind::kChunk:
      check<Chunk>(body);
      break;
    case FrameKind::kCancel:
      check<Cancel>(body);
      break;
    default:
      check_register(body);
      break;
  }
  return 0;
}
