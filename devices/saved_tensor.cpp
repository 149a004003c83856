#include "devices/saved_tensor.h"

#include <utility>

#include "devices/device.h"
#include "devices/swapper.h"

namespace tagflow::devices {

SavedTensor::SavedTensor(std::shared_ptr<Swapper> swapper, Tensor value,
                         uint64_t step)
    : swapper_(std::move(swapper)),
      step_(step),
      bytes_(int64_t(value.buffer()->bytes)),
      here_(std::move(value)) {}

Tensor SavedTensor::read() { return swapper_->read(*this); }

Tensor SavedTensor::take() { return swapper_->take(*this); }

void SavedTensor::give_up() { swapper_->forget(*this); }

void SavedTensor::fetch(Fetched done) {
  swapper_->fetch(*this, std::move(done));
}

SavedOwner save(const Tensor& value, uint64_t step) {
  if (host_readable(value) || !is_plain(value.dtype())) return {};
  const auto* memory =
      dynamic_cast<const SwappableMemory*>(value.buffer()->allocator);
  Swapper* const swapper = memory == nullptr ? nullptr : memory->swapper();
  return swapper == nullptr ? nullptr : swapper->keep(value, step);
}

Ref<SavedTensor> next_saved(const Kernel& kernel,
                            const KernelContext& context) {
  // Stacks are handles; other kernels need no cast.
  if (context.num_inputs() == 0 || is_plain(context.input(0).dtype()))
    return {};
  const auto* reader = dynamic_cast<const SavedReader*>(&kernel);
  return reader == nullptr ? Ref<SavedTensor>() : reader->next_saved(context);
}

}  // namespace tagflow::devices
