// The messages by which a master looks at a step, and holds it. docs/wire.md
// has the format.
#pragma once

#include <cstdint>
#include <string>

#include "actors/diagnosis/step_view.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// From the master: look at a part that may be held, and answer by a Seen.
struct Look {
  static constexpr FrameKind kKind = FrameKind::kLook;
  uint64_t step = 0;
  uint64_t request = 0;
  uint64_t patience_us = 0;  // within which the part must be at rest

  void write(Writer& writer) const;
  static Look read(Reader& reader);
};

// From the master: where such a part stops from now on.
struct Steer {
  static constexpr FrameKind kKind = FrameKind::kSteer;
  enum class What : uint8_t { kGoOn = 0, kStop = 1, kNext = 2 };
  uint64_t step = 0;
  What what = What::kGoOn;
  std::string frame;      // of the last two
  int64_t iteration = 0;  // of kStop

  void write(Writer& writer) const;
  static Steer read(Reader& reader);
};

// To the master: what a part looks like, if it was at rest in time.
struct Seen {
  static constexpr FrameKind kKind = FrameKind::kSeen;
  uint64_t step = 0;
  uint64_t request = 0;
  bool has_view = false;
  actors::StepView view;  // whose step is not sent

  void write(Writer& writer) const;
  static Seen read(Reader& reader);
};

}  // namespace tagflow::net
