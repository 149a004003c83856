// The processor as a device: its kernels run on the engine's workers.
#pragma once

#include <memory>

#include "devices/device_registry.h"

namespace tagflow::devices {

// A CPU in the host's memory. With a `memory_limit` in bytes (0: none) its
// kernels' outputs are counted, and refused beyond it; without one they come
// from host_allocator(), which counts nothing: memory() is then all zero.
std::unique_ptr<Device> make_cpu_device(graph::DeviceInfo info,
                                        int64_t memory_limit = 0);

// "cpu", with the option memory.
DeviceType cpu_device_type();

}  // namespace tagflow::devices
