// What the live page shows at one moment, as JSON; and what its viewer asks
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/runtime/hold.h"
#include "actors/session/inspector.h"
#include "apps/shared/runs/device_memory.h"
#include "graph/status.h"

namespace tagflow::apps::live {

struct Queue {
  std::string name;
  int64_t size = 0;
  int64_t capacity = 0;  // 0: no limit
  bool is_closed = false;
  std::string text;  // 'queue "q" has 0 of 10 elements, 3 dequeues wait'
};

struct Picture {
  double seconds = 0;  // since the page began
  bool is_running = false;
  std::optional<actors::StopPoint> stop;
  std::vector<actors::SeenPart> parts;
  std::vector<Queue> queues;
  std::vector<DeviceMemory> memory;
  uint64_t process_bytes = 0;
  std::vector<actors::Inspector::Watched> watched;
  bool can_watch = true;
  std::string error;   // of what its viewer has asked for last
  double look_ms = 0;  // how long it took to look
  size_t viewers = 0;
};

// One line; text that is not UTF-8 is replaced.
std::string to_json(const Picture& picture);

// What a viewer asks for, as JSON: {"do": "stop", "frame": "while",
// "iteration": 10}, {"do": "go"}, {"do": "next", "frame": "while"} or {"do":
// "watch", "tensors": ["loop/mul:0"]}. InvalidArgument for all else.
struct Wish {
  enum class Kind : uint8_t { kStop, kGo, kNext, kWatch };
  Kind kind = Kind::kGo;
  actors::StopPoint stop;  // of kNext: its frame
  std::vector<std::string> tensors;

  static Result<Wish> parse(std::string_view text);
};

// "[FRAME/]ITERATION" of --stop-at. InvalidArgument for what is none.
Result<actors::StopPoint> parse_stop(std::string_view text);

}  // namespace tagflow::apps::live
