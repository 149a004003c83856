#include "devices/cuda_type.h"

namespace tagflow::devices {

DeviceType cuda_device_type() {
  DeviceType type;
  type.keyword = "cuda";
  type.type = "GPU";
  type.summary = "an NVIDIA GPU";
  type.options = {{"memory", Quantity::kBytes,
                   "most bytes that its tensors may take (all it has)"}};
  type.make = [](const DeviceSpec& spec, graph::DeviceInfo info) {
    CudaOptions options;
    const auto memory = spec.options.find("memory");
    if (memory != spec.options.end()) options.memory = memory->second;
    return make_cuda_device(std::move(info), options);
  };
  return type;
}

}  // namespace tagflow::devices
