// What a trace is made of before it is text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/observer.h"

namespace tagflow::apps {

enum class TraceKind : uint8_t {
  kNode,      // a node fires
  kCompute,   // a kernel that was put off runs
  kSkip,      // a node is skipped
  kActivity,  // a thread is busy with an iteration
  kArrive,    // a token comes into an iteration
};

// What is told of a node: a copy, since the node may not live as long.
struct TraceNode {
  explicit TraceNode(const graph::Node& node)
      : name(node.name()),
        op(node.op()),
        is_enter(node.is_enter()),
        is_exit(node.is_exit()),
        is_next_iteration(node.is_next_iteration()) {}

  std::string name;
  std::string op;
  bool is_enter;
  bool is_exit;
  bool is_next_iteration;
};

// A slice of a thread's time, or a moment of it. Names are the recorder's.
struct TraceEvent {
  int64_t begin = 0;  // ticks, see TraceClock
  int64_t end = 0;
  std::string_view frame;
  devices::Tag tag;
  const TraceNode* node = nullptr;  // null of an activity
  TraceKind kind = TraceKind::kNode;
};

// Where a frame instance was started from.
struct TraceFrame {
  devices::Tag instance;
  devices::Tag caller;
};

// One thread's events, in the order of their ends.
struct TraceTrack {
  // Blocks: an event never moves, and full ones cost nothing to keep.
  static constexpr size_t kBlock = 1024;
  std::vector<std::unique_ptr<std::array<TraceEvent, kBlock>>> blocks;
  size_t used = kBlock;  // of the last block
};

// From ticks to nanoseconds since a start.
struct TraceClock {
  int64_t start = 0;
  double ns_per_tick = 1;

  int64_t ns(int64_t ticks) const {
    return int64_t(double(ticks - start) * ns_per_tick);
  }
};

// All of it as Chrome trace JSON; `dropped` events were not kept.
std::string format_trace(const std::vector<const TraceTrack*>& tracks,
                         const std::vector<TraceFrame>& frames,
                         const TraceClock& clock, uint64_t dropped);

}  // namespace tagflow::apps
