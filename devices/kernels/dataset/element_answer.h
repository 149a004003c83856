// Requests of kernels that wait for an element of a pipeline.
#pragma once

#include <memory>
#include <optional>

#include "devices/kernel.h"
#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/segment.h"

namespace tagflow::devices {

// A kernel that is answered with an element: its components become the outputs.
// Derived classes answer otherwise. Life cycle: made, and added to the step's
// cancel list, by a kernel; answered, refused or cancelled, once.
class WaitingKernel : public ElementRequest {
 public:
  // `keeps_alive`: what the wait needs, until it has ended.
  WaitingKernel(KernelContext& context, Completion done, ElementSpec spec,
                std::shared_ptr<void> keeps_alive = nullptr)
      : context_(context),
        done_(std::move(done)),
        spec_(std::move(spec)),
        keeps_alive_(std::move(keeps_alive)) {}

  KernelContext& context() const { return context_; }
  bool answer(Progress progress, Pull& pull) final;
  void refuse(const Status& reason) final;

 protected:
  void on_cancel() override;
  // Sets the outputs. The default: to the components of an element, which it
  // moves out of `pull` if it succeeds; OutOfRange at the end.
  virtual Status take(Progress progress, Pull& pull);

  const ElementSpec& spec() const { return spec_; }
  // An error that names the op.
  Status with_op(Status status) const;

 private:
  // Calls done, after which the context must not be used.
  void finish(Status status);

  KernelContext& context_;
  Completion done_;
  const ElementSpec spec_;
  std::shared_ptr<void> keeps_alive_;
};

// The types and shapes of elements that a node declares.
ElementSpec element_spec(const KernelInfo& info);

}  // namespace tagflow::devices
