// A kernel that tests hold.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "devices/kernel.h"

namespace tagflow::actors {

// Holds its step until it is let go, whatever becomes of the step. Each test
// names a type of its own, so that tests of one program do not meet.
template <class Of>
class HeldKernel final : public devices::Kernel {
 public:
  explicit HeldKernel(const devices::KernelInfo& /*info*/) {}
  Status compute(devices::KernelContext& context) const override {
    has_begun = true;
    while (holds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    context.set_output(0, context.input(0));
    return {};
  }

  static inline std::atomic<bool> has_begun{false}, holds{true};
};

}  // namespace tagflow::actors
