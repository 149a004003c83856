// Moves by kernels of a GPU, without a device around them.
#include "devices/cuda/mover.h"

#include <doctest/doctest.h>

#include "tests/devices/cuda/gpu.h"

namespace tagflow::devices {

TEST_CASE("the first error of a move is kept until it is asked for") {
  if (gpu_or_skip() == nullptr) return;
  const auto memory = CudaMemory::make({"memory", 0, 0});
  REQUIRE_MESSAGE(memory.ok(), memory.status().to_string());
  CudaMover mover(**memory);
  const Tensor from = *Tensor::allocate(DataType::kFloat, {100}, mover);
  Tensor to = *Tensor::allocate(DataType::kFloat, {100}, mover);
  CHECK(mover.take_error().ok());
  // Of nothing, for which there is no launch.
  StridedCopy nothing, all;
  nothing.add(0, 1, 1);
  all.add(100, 1, 1);
  mover.move(nothing, from, to);
  mover.move(all, from, to);
  CHECK(mover.take_error().code() == Code::kInternal);
  CHECK(mover.take_error().ok());
  mover.move(all, from, to);
  CHECK(mover.take_error().ok());
}

}  // namespace tagflow::devices
