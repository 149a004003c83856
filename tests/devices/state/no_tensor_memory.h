// An operation for whose outputs there is no memory.
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <utility>
#include <vector>

#include "devices/state/guard.h"
#include "tests/devices/state/calls.h"

namespace tagflow::devices {

// Tensors that need memory of their own cannot be had.
class NoTensorMemory final : public Allocator {
 public:
  Buffer* allocate(DataType, int64_t) override { return nullptr; }
  void deallocate(Buffer*) override {}
};

// What the op answers at once without such memory.
inline Status without_tensor_memory(const TestedOp& op,
                                    std::vector<Tensor> inputs,
                                    ResourceManager* state = nullptr) {
  std::vector<Tensor> outputs(size_t(op.node().num_outputs()));
  NoTensorMemory none;
  StepInfo step;
  step.state = state;
  const Tag tag;
  KernelContext context(&op.node(), inputs, outputs, &step, &tag, &none);
  const auto* async = dynamic_cast<const AsyncKernel*>(&op.kernel());
  REQUIRE(async != nullptr);
  const std::optional<Status> status = try_async_kernel(*async, context);
  REQUIRE(status.has_value());
  return *status;
}

}  // namespace tagflow::devices
