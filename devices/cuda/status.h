// Converts errors of the CUDA runtime to ours.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "graph/status.h"

namespace tagflow::devices {

// OK for success. Otherwise "[cuda] WHAT: " and CUDA's text: ResourceExhausted
// when out of memory, Internal for everything else.
Status cuda_status(cudaError_t result, std::string_view what);

// Makes a GPU current for the calling thread, and restores the previous one.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = -1;  // none: nothing was changed
};

}  // namespace tagflow::devices
