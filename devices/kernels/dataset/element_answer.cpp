#include "devices/kernels/dataset/element_answer.h"

namespace tagflow::devices {

Status WaitingKernel::with_op(Status status) const {
  return std::move(status).with_prefix(
      fmt::format("[{}] ", context_.node().op()));
}

void WaitingKernel::finish(Status status) {
  const std::shared_ptr<void> kept = std::move(keeps_alive_);
  const Completion done = std::exchange(done_, nullptr);
  done(std::move(status));
}

bool WaitingKernel::answer(Progress progress, Pull& pull) {
  Status status;
  {
    const Commit commit = context_.commit();
    if (commit) status = take(progress, pull);
    if (!commit) {
      finish(error(Code::kCancelled, "[{}] the run was answered before",
                   context_.node().op()));
      return false;
    }
  }
  finish(std::move(status));
  return true;
}

void WaitingKernel::refuse(const Status& reason) { finish(with_op(reason)); }

void WaitingKernel::on_cancel() {
  finish(error(Code::kCancelled, "[{}] the run was cancelled",
               context_.node().op()));
}

Status WaitingKernel::take(Progress progress, Pull& pull) {
  if (progress == Progress::kFailed) return with_op(pull.error);
  if (progress == Progress::kEnd)
    return error(Code::kOutOfRange, "[{}] End of sequence",
                 context_.node().op());
  if (Status status = spec_.check(pull.element); !status.ok())
    return with_op(std::move(status));
  for (size_t i = 0; i < pull.element.size(); ++i)
    context_.set_output(int(i), std::move(pull.element[i]));
  return {};
}

ElementSpec element_spec(const KernelInfo& info) {
  ElementSpec spec;
  if (auto types = info.attr<std::vector<DataType>>("output_types"); types.ok())
    spec.types = *std::move(types);
  if (auto shapes = info.attr<std::vector<PartialShape>>("output_shapes");
      shapes.ok())
    spec.shapes = *std::move(shapes);
  return spec;
}

}  // namespace tagflow::devices
