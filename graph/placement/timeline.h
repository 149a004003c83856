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
  // The devices must outlive this.
  explicit Timeline(std::span<const DeviceInfo> devices);

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
  std::span<const DeviceInfo> devices_;
  // When each slot of a device is free: heaps, the earliest in front.
  std::vector<std::vector<double>> lanes_;
  std::vector<double> inward_;   // when the link to the device is free
  std::vector<double> outward_;  // when the link from the device is free
  std::vector<double> held_;     // bytes
};

}  // namespace tagflow::graph
