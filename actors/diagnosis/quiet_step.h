// QuietStep: the state of a step in which nothing moves, over all its
// partitions, for messages that say why. It finds the origins of a token, also
// outside of the iteration and in other partitions.
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
// started; null if it started none, if the child is a call, or if the instance
// is over.
const FrameActor* child_of(const IterationActor& iteration, uint32_t child);

// Calls f(ordinal, frame) for each child frame that runs in the iteration.
template <class F>
void each_live_child(const IterationActor& iteration, F f) {
  for (uint32_t c = 0; c < iteration.children().size(); ++c)
    if (iteration.child_live(c)) f(c, *iteration.children()[c]);
}

// Iteration `number` of the instance; null if it has not begun, or if its actor
// runs a later one.
const IterationActor* find_iteration(const FrameInstance& instance,
                                     int64_t number);

// The partitions outlive it. Thread-compatible.
class QuietStep {
 public:
  explicit QuietStep(std::span<PartitionActor* const> partitions);

  std::span<PartitionActor* const> partitions() const { return partitions_; }
  bool is_cut() const { return partitions_.size() > 1; }

  const ReverseEdges& reverse_edges(const FramePlan& plan);
  // The spots of the origins in that iteration. For an arrival of an Enter or a
  // NextIteration, they are in the enclosing or previous iteration, if that is
  // still known.
  std::vector<Spot> spots(const IterationActor& iteration,
                          std::vector<Origin> origins);
  // The origins of the node; for a Recv that has been started, its Send.
  std::vector<Spot> into_node(const IterationActor& iteration, uint32_t node);
  // The partition that sends to the Recv; null if none does.
  const PartitionActor* sending_partition(const IterationActor& iteration,
                                          uint32_t recv);
  // The Send to the Recv; none if no partition sends to it, or if the iteration
  // of the Send is unknown.
  std::optional<Spot> sender_of(const IterationActor& iteration, uint32_t recv);

 private:
  struct Location {
    const PartitionActor* partition = nullptr;
    const FramePlan* frame = nullptr;
    uint32_t node = 0;
  };
  // The location of the Send to the Recv, if any.
  const Location* send_location(const IterationActor& iteration, uint32_t recv);
  // The origins of an Enter's or NextIteration's arrival, if known.
  std::optional<std::vector<Spot>> before(const Spot& arrival);

  const std::span<PartitionActor* const> partitions_;
  std::map<const FramePlan*, ReverseEdges> reverse_edges_;
  // By the number of the transfer; made on the first request.
  std::optional<std::unordered_map<uint32_t, Location>> senders_;
};

// "CPU:1", of the iteration's partition.
std::string device_label(const IterationActor& iteration);
std::string device_label(const Plan& plan);

}  // namespace tagflow::actors
