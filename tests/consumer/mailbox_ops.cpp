// Take, whose kernel waits without holding a thread, and Put, which changes
// state that outlives its run.
#include <memory>
#include <utility>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "mailbox.h"
#include "own_ops.h"

using namespace tagflow;

namespace {

class TakeKernel final : public devices::AsyncKernel {
 public:
  explicit TakeKernel(const devices::KernelInfo&) {}

  // Any thread may put a value. If only other runs could, this would be
  // kSharedState, and the engine could detect when all of them wait for ever.
  devices::WaitsFor waits_for() const override {
    return devices::WaitsFor::kOutside;
  }

  void compute_async(devices::KernelContext& context,
                     devices::Completion done) const override {
    Mailbox& mailbox = Mailbox::global();
    const auto wait =
        std::make_shared<Mailbox::Wait>(mailbox, context, std::move(done));
    // Before the mailbox has the wait: its completion ends the context.
    if (context.on_cancel(wait)) {
      mailbox.take(wait);
    } else {
      wait->end(error(Code::kCancelled, "[Take] the run was cancelled before"));
    }
  }
};

class PutKernel final : public devices::CheapKernel {
 public:
  explicit PutKernel(const devices::KernelInfo&) {}

  Status compute(devices::KernelContext& context) const override {
    const Tensor& value = context.input(0);
    if (!value.is_scalar())
      return context.fail("the value must be a scalar, not of shape {}",
                          value.shape().to_string());
    // The mailbox outlives the run, which must not change it after its answer.
    const devices::Commit commit = context.commit();
    if (!commit) return error(Code::kCancelled, "[Put] the run is over");
    Mailbox::global().put(value.scalar_value<double>());
    return {};
  }
};

}  // namespace

Status add_mailbox_ops() {
  auto& ops = graph::OpRegistry::global();
  // Stateful: the passes never merge two of them, nor fold them.
  TAGFLOW_RETURN_IF_ERROR(ops.add(graph::OpDefBuilder("Take")
                                      .output("value: double")
                                      .stateful()
                                      .shape(graph::scalar_shape)
                                      .build()));
  TAGFLOW_RETURN_IF_ERROR(ops.add(graph::OpDefBuilder("Put")
                                      .input("value: double")
                                      .stateful()
                                      .shape(graph::no_output_shape)
                                      .build()));
  auto& kernels = devices::KernelRegistry::global();
  kernels.add<TakeKernel>("Take");
  kernels.add<PutKernel>("Put");
  return {};
}
