#include "devices/cuda/blas.h"

#include <dlfcn.h>

#include <string>

namespace tagflow::devices {
namespace {

// Opens the library of the version that this was compiled for: from the
// system's path, or from the toolkit of the build.
Result<void*> open_library() {
  const std::string name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
  std::string problem;
  for (const std::string& path : {name, std::string(TAGFLOW_CUBLAS)}) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    problem = dlerror();
  }
  return error(Code::kFailedPrecondition, "[cuda] cannot load {}: {}", name,
               problem);
}

template <class Function>
Status find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return {};
  return error(Code::kFailedPrecondition, "[cuda] cuBLAS has no {}", name);
}

Result<BlasLibrary> load_library() {
  TAGFLOW_ASSIGN(void* const library, open_library());
  BlasLibrary blas;
  TAGFLOW_RETURN_IF_ERROR(find(library, "cublasCreate_v2", blas.create));
  TAGFLOW_RETURN_IF_ERROR(find(library, "cublasDestroy_v2", blas.destroy));
  TAGFLOW_RETURN_IF_ERROR(find(library, "cublasSetStream_v2", blas.set_stream));
  TAGFLOW_RETURN_IF_ERROR(
      find(library, "cublasSetMathMode", blas.set_math_mode));
  TAGFLOW_RETURN_IF_ERROR(
      find(library, "cublasGetStatusString", blas.status_string));
  TAGFLOW_RETURN_IF_ERROR(
      find(library, "cublasGemmStridedBatchedEx_64", blas.multiply));
  return blas;
}

}  // namespace

Result<const BlasLibrary*> BlasLibrary::load() {
  static const Result<BlasLibrary> loaded = load_library();
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

Status BlasLibrary::check(cublasStatus_t result, std::string_view what) const {
  if (result == CUBLAS_STATUS_SUCCESS) return {};
  return error(result == CUBLAS_STATUS_ALLOC_FAILED ? Code::kResourceExhausted
                                                    : Code::kInternal,
               "[cuda] {}: {}", what, status_string(result));
}

}  // namespace tagflow::devices
