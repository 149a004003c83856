// The load of devices, links and memory over time, in a simulation.
#pragma once

#include <span>
#include <vector>

#include "graph/placement/cost_model.h"
#include "graph/placement/device_info.h"

namespace tagflow::graph {

// A transfer of a tensor between devices.
struct Passage {
  uint32_t from = 0;
  uint32_t to = 0;
  double bytes = 0;
  double ready_ns = 0;  // when it can be sent
  double repeats = 1;   // number of such transfers, one after another
};

struct Span {
  double start_ns = 0;
  double finish_ns = 0;
};

// Note [The simulation] in placer.h describes the model. Thread-compatible.
class Timeline {
 public:
  // Both must outlive this.
  Timeline(std::span<const DeviceInfo> devices, const CostModel& costs);

  // When a kernel could start on the device, given its present load.
  double free_at(uint32_t device) const { return lanes_[device].front(); }
  // Uses the slot that is free first.
  Span run(uint32_t device, double ready_ns, double duration_ns);

  // foresee() computes the time of a transfer, send() also performs it.
  Span foresee(const Passage& passage) const;
  Span send(const Passage& passage);

  // Free memory of the device in bytes; infinite without a limit.
  double room(uint32_t device) const;
  void hold(uint32_t device, double bytes) { held_[device] += bytes; }
  void release(uint32_t device, double bytes) { held_[device] -= bytes; }

 private:
  // Calls visit(time), with the time when it is free, for each link that the
  // passage uses.
  template <class Self, class F>
  static void visit_links(Self& self, const Passage& passage, const F& visit);

  std::span<const DeviceInfo> devices_;
  const CostModel& costs_;
  // When each slot of a device is free: heaps, the earliest in front.
  std::vector<std::vector<double>> lanes_;
  // When the links to a device, and to its task, are free; and those from it.
  struct Links {
    double device = 0;
    double task = 0;  // only used of the first device of a task
  };
  std::vector<Links> inward_;
  std::vector<Links> outward_;
  std::vector<uint32_t> first_of_task_;  // by device
  std::vector<double> held_;             // bytes
};

}  // namespace tagflow::graph
