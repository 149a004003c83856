#include "devices/guard.h"

#include <atomic>
#include <memory>
#include <utility>

namespace tagflow::devices {
namespace {

// A completion that is called once, however often it is told, and at the
// latest when nobody is left who could call it.
class Once {
 public:
  // Takes `done` over, unless there is no memory for this.
  Once(const graph::Node& node, Completion& done) : node_(node) {
    done_.swap(done);
  }
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  // Unclaimed, the step waits, and the node is there with it.
  ~Once() {
    if (!claim()) return;
    Status lost = guarded(node_.op(), [this] {
      return error(Code::kInternal,
                   "[{}] the kernel let go of its completion without a call",
                   node_.op());
    });
    answer(std::move(lost));
  }

  // Whether it was told nothing before, and will take one answer now.
  bool claim() { return !told_.exchange(true, std::memory_order_acq_rel); }
  // REQUIRES: claim() was true.
  void answer(Status status) {
    const Completion done = std::move(done_);
    done(std::move(status));
  }

 private:
  const graph::Node& node_;
  std::atomic<bool> told_{false};
  Completion done_;
};

}  // namespace

Status run_kernel(const Kernel& kernel, KernelContext& context) {
  try {
    return kernel.compute(context);
  } catch (...) {
    return current_fault(context.node().op());
  }
}

std::optional<Status> try_state_kernel(const StateKernel& kernel,
                                       KernelContext& context,
                                       StateClaim& claim) {
  std::optional<Status> status;
  try {
    if (claim.empty()) status = kernel.claim(context, claim);
    if (!status || status->ok()) {
      if (!claim.take()) return std::nullopt;
      status = kernel.compute_held(context);
    }
  } catch (...) {
    status = current_fault(context.node().op());
  }
  claim.release();
  return status;
}

std::optional<Status> try_async_kernel(const AsyncKernel& kernel,
                                       KernelContext& context) {
  try {
    return kernel.try_compute(context);
  } catch (...) {
    return current_fault(context.node().op());
  }
}

double cost_of(const Kernel& kernel, const KernelContext& context) {
  try {
    return kernel.cost(context);
  } catch (...) {
    (void)current_fault();  // which lets a cancelled thread go
    return Kernel::kUnknownCost;
  }
}

void run_kernel_async(const AsyncKernel& kernel, KernelContext& context,
                      Completion done) {
  std::shared_ptr<Once> once;
  try {
    once = std::make_shared<Once>(context.node(), done);
    kernel.compute_async(context, [once](Status status) {
      if (once->claim()) once->answer(std::move(status));
    });
  } catch (...) {
    if (once == nullptr) return done(current_fault(context.node().op()));
    // Unless it is claimed, the step is there, and with it the context.
    if (once->claim()) once->answer(current_fault(context.node().op()));
  }
}

}  // namespace tagflow::devices
