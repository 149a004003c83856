// The stub of devices/cuda in a build without CUDA.
#include "devices/cuda_type.h"

namespace tagflow::devices {

Result<std::unique_ptr<Device>> make_cuda_device(graph::DeviceInfo,
                                                 const CudaOptions&) {
  return error(Code::kUnimplemented,
               "[cuda] this build has no CUDA: configure it with "
               "-DTAGFLOW_CUDA=ON -DTAGFLOW_KERNELS=all");
}

void register_cuda_kernels(KernelRegistry&) {}

}  // namespace tagflow::devices
