// QuietStep: the state of a step in which nothing moves, over all its
// partitions, for messages that say why. From a token it leads back to where
// that came from, out of the iteration and over to other partitions too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/diagnosis/reverse_edges.h"
#include "actors/runtime/partition_actor.h"

namespace tagflow::actors {

// Where an edge starts, in one iteration.
struct Spot {
  const IterationActor* iteration = nullptr;
  Origin origin;
};

// The iteration's child frame `child`, in the instance that the iteration
// started; null where it started none, of a call, and where it is over.
const FrameActor* child_of(const IterationActor& iteration, uint32_t child);

// The child frames that run in the iteration: f(ordinal, frame).
template <class F>
void each_live_child(const IterationActor& iteration, F f) {
  for (uint32_t c = 0; c < iteration.children().size(); ++c)
    if (iteration.child_live(c)) f(c, *iteration.children()[c]);
}

// Iteration `number` of the instance; null where it has not begun, or where
// its actor has gone on to a later one.
const IterationActor* find_iteration(const FrameInstance& instance,
                                     int64_t number);

// The partitions outlive it. Thread-compatible.
class QuietStep {
 public:
  explicit QuietStep(std::span<PartitionActor* const> partitions);

  std::span<PartitionActor* const> partitions() const { return partitions_; }
  bool is_cut() const { return partitions_.size() > 1; }

  const ReverseEdges& reverse_edges(const FramePlan& plan);
  // The origins in that iteration; of what an Enter or a NextIteration brought,
  // those in the iteration around or before, where it is still known.
  std::vector<Spot> spots(const IterationActor& iteration,
                          std::vector<Origin> origins);
  // What leads to the node: of a Recv that has been started, its Send.
  std::vector<Spot> into_node(const IterationActor& iteration, uint32_t node);
  // Who sends what the Recv receives; null where nobody does.
  const PartitionActor* sending_partition(const IterationActor& iteration,
                                          uint32_t recv);
  // The Send of what the Recv receives; none where no partition sends it, or
  // its iteration is not known.
  std::optional<Spot> sender_of(const IterationActor& iteration, uint32_t recv);

 private:
  struct Location {
    const PartitionActor* partition = nullptr;
    const FramePlan* frame = nullptr;
    uint32_t node = 0;
  };
  // Of what the Recv receives, if any.
  const Location* send_location(const IterationActor& iteration, uint32_t recv);
  // What led to an Enter's or NextIteration's arrival, if that is known.
  std::optional<std::vector<Spot>> before(const Spot& arrival);

  const std::span<PartitionActor* const> partitions_;
  std::map<const FramePlan*, ReverseEdges> reverse_edges_;
  // By the number of the transfer; made when first asked for.
  std::optional<std::unordered_map<uint32_t, Location>> senders_;
};

// "CPU:1", of the iteration's partition.
std::string device_label(const IterationActor& iteration);
std::string device_label(const Plan& plan);

}  // namespace tagflow::actors
