// cuBLAS, loaded on first use: it takes hundreds of megabytes of memory and a
// good part of a second. Programs without products on a GPU should not pay
// that.
#pragma once

#include <cublas_v2.h>

#include "graph/status.h"

namespace tagflow::devices {

// The functions of the library that we use, with its own names.
struct BlasLibrary {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasGetStatusString) status_string = nullptr;
  decltype(&cublasGemmStridedBatchedEx_64) multiply = nullptr;

  // Loads it once for the process, which keeps it. FailedPrecondition if the
  // library is not installed. Thread-safe.
  static Result<const BlasLibrary*> load();
  // ResourceExhausted when out of memory, Internal for other failures.
  Status check(cublasStatus_t result, std::string_view what) const;
};

}  // namespace tagflow::devices
