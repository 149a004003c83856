#include "devices/tracking_allocator.h"

namespace tagflow::devices {

TrackingAllocator::Owner TrackingAllocator::make(Options options) {
  return Owner(new TrackingAllocator(std::move(options)));
}

Buffer* TrackingAllocator::allocate(DataType dtype, int64_t count) {
  const size_t bytes = size_t(count) * dtype_size(dtype);
  int64_t in_use = ledger_.reserve(bytes);
  while (in_use < 0 && swapper_ != nullptr && swapper_->make_room(bytes))
    in_use = ledger_.reserve(bytes);
  if (in_use < 0) return nullptr;
  Buffer* buffer = host_allocator().allocate(dtype, count);
  if (buffer == nullptr) {
    ledger_.give_back(bytes);
    return nullptr;
  }
  ledger_.confirm(in_use);
  buffer->allocator = this;
  refs_.fetch_add(1, std::memory_order_relaxed);
  return buffer;
}

void TrackingAllocator::deallocate(Buffer* buffer) {
  ledger_.give_back(buffer->bytes);
  discharge(*buffer, buffer->outside.load(std::memory_order_relaxed));
  host_allocator().deallocate(buffer);
  release();
}

void TrackingAllocator::release() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

MemoryStats TrackingAllocator::stats() const {
  MemoryStats stats = ledger_.stats();
  if (swapper_ != nullptr) swapper_->add_to(stats);
  return stats;
}

std::string TrackingAllocator::describe() const {
  return options_.name + " (" + to_string(stats()) + ")";
}

}  // namespace tagflow::devices
