// Errors of the CUDA run time as ours.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "graph/status.h"

namespace tagflow::devices {

// Ok for success. Otherwise "[cuda] WHAT: " and CUDA's words for it:
// ResourceExhausted where memory is, Internal for all else.
Status cuda_status(cudaError_t result, std::string_view what);

// Makes a GPU the calling thread's, and gives the thread back the one it had.
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
