// An operation for whose outputs there is no memory.
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "devices/state/guard.h"
#include "tests/devices/no_memory.h"
#include "tests/devices/state/calls.h"

namespace tagflow::devices {

// What the op answers, at once if it may wait, if tensors that need memory of
// their own cannot be had.
inline Status without_tensor_memory(const TestedOp& op,
                                    std::vector<Tensor> inputs,
                                    ResourceManager* state = nullptr) {
  std::vector<Tensor> outputs(size_t(op.node().num_outputs()));
  NoMemory none;
  StepInfo step;
  step.state = state;
  const Tag tag;
  KernelContext context(&op.node(), inputs, outputs, &step, &tag, &none);
  const auto* async = dynamic_cast<const AsyncKernel*>(&op.kernel());
  if (async == nullptr) return run_kernel(op.kernel(), context);
  const std::optional<Status> status = try_async_kernel(*async, context);
  REQUIRE(status.has_value());
  return *status;
}

}  // namespace tagflow::devices
