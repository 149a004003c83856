// CostRecorder: measures what nodes cost, for placing them better next time.
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

// Takes the times of kernels that run on workers, the bytes of all outputs, and
// how often loops go around: iterations that were started but the last of each,
// whose predicate ends the loop. Of a loop in another one it is how often for
// each time that the other one does; for that the last iteration of the other
// one, which enters it with dead tokens, is none.
// An accelerator computes in order: there a kernel takes the time from its
// launch, or from the end of the one before it if that is later, to its answer.
// So its copies count where it waits for them. Runs that it observes there at
// the same time are taken for one another.
class CostRecorder : public Observer {
 public:
  // Of the session whose runs it observes. `known`, what was measured before,
  // counts on.
  explicit CostRecorder(
      std::span<const std::unique_ptr<devices::Device>> devices,
      graph::CostModel known = {});
  // What was known, and was seen so far of all runs that it observed.
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

  // What was seen of a loop on one device.
  struct Loop {
    std::string around;  // the frame that it is in; "" of the root
    uint64_t entered = 0;
    uint64_t iterations = 0;

    uint64_t trips() const {  // a loop that was cut short may lack its first
      return iterations > entered ? iterations - entered : 0;
    }
  };

  // Whether an accelerator computes the node.
  bool is_launched(const Location& location, const graph::Node& node) const;
  // Nanoseconds that the accelerator took. REQUIRES: mutex_ is held.
  double end_launch(const Location& location, const graph::Node& node);

  std::set<std::string, std::less<>> accelerators_;  // names; never changes
  mutable std::mutex mutex_;                         // guards all below
  graph::CostModel costs_;
  std::map<Launch, Clock::time_point> launched_;
  using Frame = std::pair<std::string, std::string>;  // a device, its name
  std::map<Frame, Loop> loops_;
  // When each accelerator has last answered.
  std::map<std::string, Clock::time_point, std::less<>> answered_;
};

}  // namespace tagflow::actors
