#include "devices/state/guard.h"

#include <atomic>
#include <memory>
#include <utility>

#include "devices/outside_memory.h"

namespace tagflow::devices {
namespace {

// A completion that is called once, even if several callers answer, and at the
// latest when the last one that could call it is gone.
class Once {
 public:
  // Takes `done`, unless there is no memory for this.
  Once(const graph::Node& node, Completion& done) : node_(node) {
    done_.swap(done);
  }
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  // While this is unclaimed, the step waits, so the node still exists.
  ~Once() {
    if (!claim()) return;
    Status lost = guarded(node_.op(), [this] {
      return error(Code::kInternal,
                   "[{}] the kernel dropped its completion without calling it",
                   node_.op());
    });
    answer(std::move(lost));
  }

  // Whether this is the first answer, which the caller must now give.
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

// Counts the outputs of a kernel that has succeeded, if they are in a memory
// with a limit: an error replaces the answer.
void count_outputs(KernelContext& context, Status& status) {
  if (!context.allocator().counts_outside() || !status.ok()) [[likely]]
    return;
  status = guarded(context.node().op(), [&] { return count_outside(context); });
}

}  // namespace

Status run_kernel(const Kernel& kernel, KernelContext& context) {
  try {
    Status status = kernel.compute(context);
    count_outputs(context, status);
    return status;
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
      count_outputs(context, *status);
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
    std::optional<Status> status = kernel.try_compute(context);
    if (status) count_outputs(context, *status);
    return status;
  } catch (...) {
    return current_fault(context.node().op());
  }
}

double cost_of(const Kernel& kernel, const KernelContext& context) {
  try {
    return kernel.cost(context);
  } catch (...) {
    (void)current_fault();  // lets a cancelled thread end
    return Kernel::kUnknownCost;
  }
}

void run_kernel_async(const AsyncKernel& kernel, KernelContext& context,
                      Completion done) {
  std::shared_ptr<Once> once;
  try {
    once = std::make_shared<Once>(context.node(), done);
    kernel.compute_async(context, [once, &context](Status status) {
      if (!once->claim()) return;
      count_outputs(context, status);
      once->answer(std::move(status));
    });
  } catch (...) {
    if (once == nullptr) return done(current_fault(context.node().op()));
    // While it is unclaimed, the step and the context still exist.
    if (once->claim()) once->answer(current_fault(context.node().op()));
  }
}

}  // namespace tagflow::devices
