#include "devices/cuda/status.h"

namespace tagflow::devices {

Status cuda_status(cudaError_t result, std::string_view what) {
  if (result == cudaSuccess) return {};
  return error(result == cudaErrorMemoryAllocation ? Code::kResourceExhausted
                                                   : Code::kInternal,
               "[cuda] {}: {} ({})", what, cudaGetErrorString(result),
               cudaGetErrorName(result));
}

OnDevice::OnDevice(int device) {
  int current = -1;
  if (cudaGetDevice(&current) == cudaSuccess && current == device) return;
  before_ = current;
  cudaSetDevice(device);
}

OnDevice::~OnDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
}

}  // namespace tagflow::devices
