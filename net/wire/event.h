// Event: what has happened in a process of a cluster, for its log.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "graph/status.h"

namespace tagflow::net {

struct Event {
  // A warning is for whoever reads along; news are for whoever keeps a log.
  enum class Kind : uint8_t { kNews, kWarning };

  static Event warning(const Status& why, std::string peer = {}) {
    return {Kind::kWarning,
            std::string(why.message()),
            why.code(),
            std::move(peer),
            {}};
  }

  static Event news(const Status& why, std::string peer = {}) {
    Event event = warning(why, std::move(peer));
    event.kind = Kind::kNews;
    return event;
  }

  Kind kind = Kind::kWarning;
  std::string text;
  Code code = Code::kOk;         // of the error that it is
  std::string peer;              // the other process; empty: none
  std::optional<uint64_t> step;  // as the master numbers it
};

// Receives events, on any thread, and must not block or throw.
using OnEvent = std::function<void(const Event&)>;

}  // namespace tagflow::net
