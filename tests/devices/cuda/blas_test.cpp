#include "devices/cuda/blas.h"

#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("cuBLAS is loaded once, or it is said that it is not there") {
  const auto blas = BlasLibrary::load();
  if (!blas.ok())
    return expect_error(blas, Code::kFailedPrecondition,
                        "[cuda] cannot load libcublas.so.");
  CHECK(*BlasLibrary::load() == *blas);
  CHECK((*blas)->check(CUBLAS_STATUS_SUCCESS, "multiplying").ok());
  expect_error((*blas)->check(CUBLAS_STATUS_ALLOC_FAILED, "multiplying"),
               Code::kResourceExhausted, "[cuda] multiplying: ");
  expect_error((*blas)->check(CUBLAS_STATUS_EXECUTION_FAILED, "multiplying"),
               Code::kInternal, "[cuda] multiplying: ");
}

}  // namespace tagflow::devices
