#include "apps/bench/busy_op.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::apps {
namespace {

constexpr const char* kOp = "Busy";

std::atomic<int64_t> kernels_run{0};

class BusyKernel : public devices::Kernel {
 public:
  static Result<std::unique_ptr<devices::Kernel>> make(
      const devices::KernelInfo& info) {
    TAGFLOW_ASSIGN(const auto nanoseconds, info.attr<int64_t>("nanoseconds"));
    TAGFLOW_ASSIGN(const auto sleeps, info.attr<bool>("sleeps"));
    return std::unique_ptr<devices::Kernel>(
        std::make_unique<BusyKernel>(nanoseconds, sleeps));
  }
  BusyKernel(int64_t nanoseconds, bool sleeps)
      : nanoseconds_(nanoseconds), sleeps_(sleeps) {}

  Status compute(devices::KernelContext& context) const override {
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::nanoseconds(nanoseconds_);
    if (sleeps_) std::this_thread::sleep_until(end);
    while (std::chrono::steady_clock::now() < end) {
    }
    context.set_output(0, context.input(0));
    kernels_run.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  double cost(const devices::KernelContext&) const override {
    return double(nanoseconds_);
  }

 private:
  const int64_t nanoseconds_;
  const bool sleeps_;
};

Status add_to_registries() {
  TAGFLOW_RETURN_IF_ERROR(
      graph::OpRegistry::global().add(graph::OpDefBuilder(kOp)
                                          .input("x: T")
                                          .output("y: T")
                                          .attr("T: type")
                                          .attr("nanoseconds: int >= 0")
                                          .attr("sleeps: bool = false")
                                          .shape(graph::unchanged_shape)
                                          .build()));
  devices::KernelRegistry::global().add<BusyKernel>(kOp);
  return {};
}

}  // namespace

Status register_busy_op() {
  static const Status registered = add_to_registries();
  return registered;
}

graph::Output busy(const graph::Scope& scope, const graph::Input& x,
                   int64_t nanoseconds, Busy how) {
  return scope.op(
      kOp, {x},
      {{"nanoseconds", nanoseconds}, {"sleeps", how == Busy::kSleeps}})[0];
}

int64_t busy_kernels_run() {
  return kernels_run.load(std::memory_order_relaxed);
}

}  // namespace tagflow::apps
