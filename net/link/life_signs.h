// What both kinds of links do about the life of the other side.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "graph/status.h"
#include "net/link/clock.h"
#include "net/link/silence.h"
#include "net/link/system_io.h"
#include "net/link/traffic.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// The reason of the Bye of a master that needs its workers no more.
inline constexpr std::string_view kIsDone = "it is done";
inline constexpr std::string_view kLeaves = "the peer leaves: ";

// Whether a link was lost by the Bye for that reason.
inline bool is_done(const Status& lost) {
  return lost.code() == Code::kUnavailable &&
         lost.message().ends_with(fmt::format("{}{}", kLeaves, kIsDone));
}

// Takes a Ping, a Pong or a Bye; false if the frame is another one. A Bye is an
// error: the link is lost. `send` sends a message, and returns a Status; a Pong
// is told to `on_pong`, and its round trip to `traffic`.
template <class Send, class OnPong>
Result<bool> take_life_sign(const Frame& frame, const std::string& peer,
                            TrafficCount& traffic, const Send& send,
                            const OnPong& on_pong) {
  switch (frame.kind) {
    case FrameKind::kPing: {
      TAGFLOW_ASSIGN(const Ping ping, parse_body<Ping>(frame.body));
      TAGFLOW_RETURN_IF_ERROR(send(Pong{ping.nonce, ping.time_ns, clock_ns()}));
      return true;
    }
    case FrameKind::kPong: {
      TAGFLOW_ASSIGN(const Pong pong, parse_body<Pong>(frame.body));
      // The peer may have made it up.
      const uint64_t now = clock_ns();
      if (pong.ping_time_ns < now)
        traffic.take_round_trip(now - pong.ping_time_ns);
      on_pong(pong);
      return true;
    }
    case FrameKind::kBye: {
      TAGFLOW_ASSIGN(const Bye bye, parse_body<Bye>(frame.body));
      return lost(peer, fmt::format("{}{}", kLeaves, bye.reason));
    }
    default:
      return false;
  }
}

// What follows the end of an interval; an error if the peer is silent. `sent`
// is the number of frames that this side has sent, and `last` that of the
// interval before. A link that always has something to send asks for its round
// trip once.
template <class Send>
Status end_interval(Silence& silence, uint32_t sent, uint32_t& last,
                    const std::string& peer, const TrafficCount& traffic,
                    const Send& send) {
  switch (silence.end_interval(sent != std::exchange(last, sent))) {
    case Silence::Action::kGiveUp:
      return lost(peer, "the peer is silent");
    case Silence::Action::kPing:
      return send(Ping{sent, clock_ns()});
    case Silence::Action::kNothing:
      if (traffic.get().round_trip_ns == 0) return send(Ping{sent, clock_ns()});
      break;
  }
  return {};
}

}  // namespace tagflow::net
