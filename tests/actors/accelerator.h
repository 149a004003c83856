// A session's accelerator, and counts of its copies.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>

#include "actors/session/session.h"
#include "devices/device.h"

namespace tagflow::actors {

inline devices::Device& accelerator_of(const Session& session) {
  for (const auto& device : session.devices())
    if (device->accelerator() != nullptr) return *device;
  FAIL("there is no accelerator");
  std::abort();
}

// Counts what a device copies from now on.
class Copies {
  using Activity = devices::AcceleratorActivity;

 public:
  explicit Copies(devices::Device& device) : device_(device) {
    device.accelerator()->observe([this](const Activity& activity) {
      if (activity.stream == Activity::Stream::kToDevice)
        to_device_ += activity.bytes;
      if (activity.stream == Activity::Stream::kToHost)
        to_host_ += activity.bytes;
    });
  }
  ~Copies() { device_.accelerator()->observe({}); }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  int64_t to_device() const { return to_device_; }
  int64_t to_host() const { return to_host_; }

 private:
  devices::Device& device_;
  std::atomic<int64_t> to_device_{0}, to_host_{0};
};

}  // namespace tagflow::actors
