// What a Recv that waits for its token waits for in the end.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "actors/diagnosis/quiet_step.h"

namespace tagflow::actors {

// The tensor that a Recv waits for, and who owes it.
struct MissingTransfer {
  std::string tensor;   // "x", or "x:1" of another output
  std::string device;   // that sends it, "CPU:0"
  bool is_sent = true;  // by any partition
  // The Send has not sent it, in an iteration that has begun.
  bool is_open = false;
  // What the Send waits for in the end, "frame "while" of CPU:0"; empty where
  // that is the tensor's own node, or is not known.
  std::string cause;
};

// Of one step, which outlives it. Walks back from Recvs, nowhere twice: many
// wait for the same. Thread-compatible.
class MissingTransfers {
 public:
  explicit MissingTransfers(QuietStep& step) : step_(step) {}

  // What the Recv of the iteration has not got. REQUIRES: the node is a Recv.
  MissingTransfer of(const IterationActor& iteration, uint32_t recv);

 private:
  using Key = std::tuple<const IterationActor*, bool, uint32_t>;

  // Where a walk from there comes to its end; none where it goes in a circle.
  std::optional<Spot> end_of(Spot spot);

  QuietStep& step_;
  std::map<Key, std::optional<Spot>> ends_;
};

}  // namespace tagflow::actors
