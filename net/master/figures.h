// ClusterFigures: what a master says of its workers to whoever watches it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/protocol/step_counts.h"
#include "net/transfer/link_figures.h"

namespace tagflow::net {

struct ClusterFigures {
  enum class State : uint8_t { kJoining, kReady, kLeaving, kLost };
  struct Member {
    State state = State::kLost;
    LinkFigures link;  // zeros if it is lost
  };
  // Of all its sessions; a step that is refused has begun and failed.
  StepCounts::Numbers steps;
  uint64_t executables = 0;  // that are registered at workers
  std::vector<Member> members;
};

}  // namespace tagflow::net
