// A recording of a run, token by token: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/shared/draw/drawing.h"

namespace tagflow::apps::stepper {

// One instance of a frame: a loop that was entered, a function that was
// called.
struct Instance {
  std::string frame;  // its static name; "" of the root
  // " on CPU:1"; empty on the device that was seen first.
  std::string device;
  int drawn = 0;    // among the drawing's frames
  int caller = -1;  // the scope that started it; -1 for the root
  int number = 1;   // among the caller's instances of that frame, from 1
};

// One iteration of an instance. A tag names it.
struct Scope {
  int instance = 0;
  int64_t iteration = 0;
};

// Special values of a token. Others are indices into Recording::values.
inline constexpr int kDead = -1;
inline constexpr int kGone = -2;     // the token is gone
inline constexpr int kControl = -3;  // a token of a control edge

// A change at edge `place` of the drawing. If that is negative, the token is
// in node -1 - place, an Enter, Exit or NextIteration, on its way to another
// iteration.
struct TokenChange {
  int place = 0;
  int scope = 0;
  int value = kGone;
};
inline int place_in_node(int node) { return -1 - node; }

// The number of inputs that a node still waits for; kFired once it has fired.
inline constexpr int kFired = -1;
struct PendingChange {
  int node = 0;
  int count = 0;
};

struct Arrival {
  int node = 0;  // Enter, Exit, NextIteration, or a fed node
  int value = kDead;
};

enum class StepKind : uint8_t {
  kArrive,  // tokens came from outside, and may start the iteration
  kFire,
  kSkip,    // a node with a dead input
  kAnswer,  // a kernel that was deferred or had to wait is done
  kEnd,     // the iteration is retired
};

// A step of a run, as seen by one iteration: a position of the slider.
struct Step {
  StepKind kind = StepKind::kArrive;
  int scope = 0;
  int node = -1;
  bool starts = false;        // kArrive: the iteration starts
  bool starts_frame = false;  // and with it the frame instance
  bool ends_frame = false;    // kEnd: and with it the frame instance
  std::vector<int> outputs;
  std::vector<Arrival> arrivals;
  std::vector<TokenChange> tokens;
  std::vector<PendingChange> pending;  // of this scope
  // The ready nodes of this scope afterwards, in firing order. The number is
  // limited, since a graph may have very many ready nodes in very many steps.
  static constexpr size_t kMaxReady = 100;
  std::vector<int> ready;
  size_t more_ready = 0;  // the number of others
  // Outstanding work in this scope afterwards: kernels that have not answered,
  // and child frames that have not ended.
  size_t running = 0;
  size_t children = 0;
  // For an Exit that fires: the number of its dead tokens that the frame still
  // keeps for its end, and of those dropped because the Exit is or was live.
  int kept = 0;
  int dropped = 0;
  // At the frame's end: Exits that were never live, each of which sends one
  // dead token.
  std::vector<int> dead_exits;
};

struct NodeNote {
  std::vector<std::string> attrs;    // "T = int32"
  std::vector<std::string> outputs;  // "int32[2,?]"
};

struct Value {
  std::string brief;  // about 12 characters
  std::string text;   // a line
};

struct Recording {
  draw::Drawing drawing;
  std::vector<NodeNote> notes;  // by the drawing's nodes
  std::vector<Instance> instances;
  std::vector<Scope> scopes;
  std::vector<Value> values;
  std::vector<Step> steps;
  bool is_full = false;  // later events were dropped
};

}  // namespace tagflow::apps::stepper
