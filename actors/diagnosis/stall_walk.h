// Finds what a waiting Recv ultimately waits for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "actors/diagnosis/quiet_step.h"

namespace tagflow::actors {

// The tensor that a Recv waits for, and its sender.
struct MissingTransfer {
  std::string tensor;   // "x", or "x:1" of another output
  std::string device;   // the sender, "CPU:0"
  bool is_sent = true;  // by any partition
  // The iteration of the Send has begun, but the Send has not fired.
  bool is_open = false;
  // What the Send ultimately waits for, "frame "while" of CPU:0"; empty if that
  // is the tensor's own node, or is unknown.
  std::string cause;
};

// The missing transfers of one step, which outlives it. Walks back from Recvs,
// and visits each spot once, since many Recvs wait for the same.
// Thread-compatible.
class MissingTransfers {
 public:
  explicit MissingTransfers(QuietStep& step) : step_(step) {}

  // The transfer that the Recv waits for. REQUIRES: the node is a Recv.
  MissingTransfer of(const IterationActor& iteration, uint32_t recv);

 private:
  using Key = std::tuple<const IterationActor*, bool, uint32_t>;

  // The end of a walk from there; none if the walk is a cycle.
  std::optional<Spot> end_of(Spot spot);

  QuietStep& step_;
  std::map<Key, std::optional<Spot>> ends_;
};

}  // namespace tagflow::actors
