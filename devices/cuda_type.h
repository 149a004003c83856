// GPUs as a device type: implemented in devices/cuda, or by the stub
// devices/no_cuda in a build without CUDA.
#pragma once

#include <memory>

#include "devices/device_registry.h"

namespace tagflow::devices {

class KernelRegistry;

struct CudaOptions {
  int64_t memory = 0;  // most bytes that tensors may take; 0: no limit of ours
};

// "cuda", with the option memory. It exists in every build, so that programs
// report it alike everywhere; its make() is the function below.
DeviceType cuda_device_type();

// The GPU with the number in info.name; the rest of info is filled in. NotFound
// if this machine has no such GPU, or no driver for it; Unimplemented in a
// build without CUDA.
Result<std::unique_ptr<Device>> make_cuda_device(graph::DeviceInfo info,
                                                 const CudaOptions& options);

// The kernels for devices of type "GPU". None in a build without CUDA.
void register_cuda_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
