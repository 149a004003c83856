// CostRecorder: measures what nodes cost, for placing them better next time.
//
//   actors::CostRecorder recorder;
//   session->run(feeds, fetches, {}, {.observer = &recorder});
//   session->learn(recorder.costs());
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "actors/observer.h"
#include "graph/placement/cost_model.h"

namespace tagflow::actors {

// Takes the times of kernels that run on workers, and the bytes of all outputs.
// An accelerator computes in order: there a kernel takes the time from its
// launch, or from the end of the one before it if that is later, to its answer.
// So its copies count where it waits for them. Runs that it observes there at
// the same time are taken for one another.
class CostRecorder : public Observer {
 public:
  // What was seen so far, of all runs that it observed. Thread-safe.
  graph::CostModel costs() const;

  void on_fire(const Place& place, const graph::Node& node, bool dead) override;
  void on_fired(const Place& place, const graph::Node& node,
                std::span<const Tensor> outputs) override;
  void on_compute(const Place& place, const graph::Node& node) override;
  void on_computed(const Place& place, const graph::Node& node) override;

 private:
  using Clock = std::chrono::steady_clock;
  // A node, its frame and its iteration.
  using Launch = std::tuple<const graph::Node*, uint64_t, uint64_t, int64_t>;

  // Nanoseconds that the accelerator took. REQUIRES: mutex_ is held.
  double end_launch(const Place& place, const graph::Node& node);

  mutable std::mutex mutex_;  // guards all below
  graph::CostModel costs_;
  std::map<Launch, Clock::time_point> launched_;
  // When each accelerator has last answered.
  std::map<std::string, Clock::time_point, std::less<>> answered_;
};

}  // namespace tagflow::actors
