// What devices and links do over time, and what memory holds, in a simulation.
#pragma once

#include <span>
#include <vector>

#include "graph/placement/cost_model.h"
#include "graph/placement/device_info.h"

namespace tagflow::graph {

// A tensor on its way between devices.
struct Passage {
  uint32_t from = 0;
  uint32_t to = 0;
  double bytes = 0;
  double ready_ns = 0;  // when it is there to be sent
  double repeats = 1;   // so many of the kind, one after another
};

struct Span {
  double start_ns = 0;
  double finish_ns = 0;
};

// Note [The simulation] in placer.h says what is modelled. Thread-compatible.
class Timeline {
 public:
  // The devices must outlive this.
  explicit Timeline(std::span<const DeviceInfo> devices);

  // When a kernel could start on the device, for all that runs there already.
  double free_at(uint32_t device) const { return lanes_[device].front(); }
  // Takes the place that is free first.
  Span run(uint32_t device, double ready_ns, double duration_ns);

  // What would be if it were sent now; and what is, if it is.
  Span foresee(const Passage& passage) const;
  Span send(const Passage& passage);

  // Bytes that the device could still hold; without a limit, infinitely many.
  double room(uint32_t device) const;
  void hold(uint32_t device, double bytes) { held_[device] += bytes; }
  void release(uint32_t device, double bytes) { held_[device] -= bytes; }

 private:
  std::span<const DeviceInfo> devices_;
  // When each of a device's places is free: heaps, the first one in front.
  std::vector<std::vector<double>> lanes_;
  std::vector<double> inward_;   // when the link to the device is free
  std::vector<double> outward_;  // and that from it
  std::vector<double> held_;     // bytes
};

}  // namespace tagflow::graph
