// The CPU as a device: its kernels run on the engine's workers.
#pragma once

#include <memory>

#include "devices/device_registry.h"

namespace tagflow::devices {

// A CPU in the host's memory. With a `memory_limit` in bytes (0: none) the
// outputs of its kernels are counted, and rejected beyond it; without one they
// come from host_allocator(), which counts nothing: memory() is all zero.
std::unique_ptr<Device> make_cpu_device(graph::DeviceInfo info,
                                        int64_t memory_limit = 0);

// "cpu", with the option memory.
DeviceType cpu_device_type();

}  // namespace tagflow::devices
