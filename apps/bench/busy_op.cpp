#include "apps/bench/busy_op.h"

#include <chrono>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::apps {
namespace {

constexpr const char* kOp = "Busy";

class BusyKernel : public devices::Kernel {
 public:
  static Result<std::unique_ptr<devices::Kernel>> make(
      const devices::KernelInfo& info) {
    TAGFLOW_ASSIGN(const auto nanoseconds, info.attr<int64_t>("nanoseconds"));
    return std::unique_ptr<devices::Kernel>(
        std::make_unique<BusyKernel>(nanoseconds));
  }
  explicit BusyKernel(int64_t nanoseconds) : nanoseconds_(nanoseconds) {}

  Status compute(devices::KernelContext& context) const override {
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::nanoseconds(nanoseconds_);
    while (std::chrono::steady_clock::now() < end) {
    }
    context.set_output(0, context.input(0));
    return {};
  }
  double cost(const devices::KernelContext&) const override {
    return double(nanoseconds_);
  }

 private:
  const int64_t nanoseconds_;
};

}  // namespace

Status register_busy_op() {
  TAGFLOW_RETURN_IF_ERROR(
      graph::OpRegistry::global().add(graph::OpDefBuilder(kOp)
                                          .input("x: T")
                                          .output("y: T")
                                          .attr("T: type")
                                          .attr("nanoseconds: int >= 0")
                                          .shape(graph::unchanged_shape)
                                          .build()));
  devices::KernelRegistry::global().add<BusyKernel>(kOp);
  return {};
}

graph::Output busy(const graph::Scope& scope, const graph::Input& x,
                   int64_t nanoseconds) {
  return scope.op(kOp, {x}, {{"nanoseconds", nanoseconds}})[0];
}

}  // namespace tagflow::apps
