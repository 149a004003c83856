// CostRecorder: measures the costs of nodes, for a better placement.
//
//   actors::CostRecorder recorder(session->devices());
//   session->run(feeds, fetches, {}, {.observer = &recorder});
//   session->learn(recorder.costs());
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "actors/watch/observer.h"
#include "devices/device.h"
#include "graph/placement/cost_model.h"

namespace tagflow::actors {

// Measures the times of kernels that run on workers, the bytes of all outputs,
// and the trip counts of loops: the iterations that were started, without the
// last one, whose predicate ends the loop. The trip count of a nested loop is
// per trip of the outer loop; the last iteration of the outer loop, which
// enters the inner one with dead tokens, is not a trip.
// An accelerator computes in order: a kernel's time there is from its launch,
// or from the end of the previous kernel if that is later, to its answer. So
// the time includes copies that the kernel waits for. Concurrent runs on an
// accelerator are not distinguished.
class CostRecorder : public Observer {
 public:
  // `devices` are those of the session whose runs it observes. `known` are
  // earlier measurements, to which it adds.
  explicit CostRecorder(
      std::span<const std::unique_ptr<devices::Device>> devices,
      graph::CostModel known = {});
  // The known costs, and the measurements of all observed runs so far.
  // Thread-safe.
  graph::CostModel costs() const;

  void on_fire(const Location& location, const graph::Node& node,
               bool dead) override;
  void on_fired(const Location& location, const graph::Node& node,
                std::span<const Tensor> outputs) override;
  void on_compute(const Location& location, const graph::Node& node) override;
  void on_computed(const Location& location, const graph::Node& node) override;
  void on_iteration_start(const Location& location) override;
  void on_frame_start(const Location& location,
                      const Location& caller) override;

 private:
  using Clock = std::chrono::steady_clock;
  // A node, its frame and its iteration.
  using Launch = std::tuple<const graph::Node*, uint64_t, uint64_t, int64_t>;

  // The measurements of a loop on one device.
  struct Loop {
    std::string around;  // the frame that it is in; "" of the root
    uint64_t entered = 0;
    uint64_t iterations = 0;

    uint64_t trips() const {  // an aborted loop may lack its first
      return iterations > entered ? iterations - entered : 0;
    }
  };

  // Whether an accelerator computes the node.
  bool is_launched(const Location& location, const graph::Node& node) const;
  // Nanoseconds that the accelerator took. REQUIRES: mutex_ is held.
  double end_launch(const Location& location, const graph::Node& node);

  std::set<std::string, std::less<>> accelerators_;  // names; immutable
  mutable std::mutex mutex_;                         // guards all below
  graph::CostModel costs_;
  std::map<Launch, Clock::time_point> launched_;
  using Frame = std::pair<std::string, std::string>;  // a device, its name
  std::map<Frame, Loop> loops_;
  // The time of the last answer of each accelerator.
  std::map<std::string, Clock::time_point, std::less<>> answered_;
};

}  // namespace tagflow::actors
