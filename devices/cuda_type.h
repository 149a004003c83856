// GPUs as a device type. devices/cuda has them; where this library was built
// without CUDA, devices/no_cuda says so in its place.
#pragma once

#include <memory>

#include "devices/device_registry.h"

namespace tagflow::devices {

class KernelRegistry;

struct CudaOptions {
  int64_t memory = 0;  // most bytes that tensors may take; 0: what there is
};

// "cuda", with the option memory. In every build, so that a program says the
// same of it everywhere; its make() is the function below.
DeviceType cuda_device_type();

// The GPU with the number of info.name; of info, the rest is filled in.
// NotFound where this machine has no such GPU, or no driver for it;
// Unimplemented in a build without CUDA.
Result<std::unique_ptr<Device>> make_cuda_device(graph::DeviceInfo info,
                                                 const CudaOptions& options);

// The kernels for devices of type "GPU". None in a build without CUDA.
void register_cuda_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
