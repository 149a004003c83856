#include "graph/memory_charge.h"

#include "graph/status_exception.h"

namespace tagflow {

MemoryCharge::MemoryCharge(const MemoryCharge& other) {
  if (other.buffer_ == nullptr) return;
  Allocator& allocator = *other.buffer_->allocator;
  if (!change(allocator, other.bytes()))
    throw StatusException(out_of_memory(allocator, "a copy", other.bytes()));
}

bool MemoryCharge::change(Allocator& allocator, size_t bytes) {
  if (buffer_ != nullptr && buffer_->allocator != &allocator) {
    MemoryCharge moved;
    if (!moved.set(allocator, bytes)) return false;
    std::swap(buffer_, moved.buffer_);
    return true;
  }
  const size_t before = this->bytes();
  if (bytes <= before) {
    if (buffer_ != nullptr) allocator.discharge(*buffer_, before - bytes);
    return true;
  }
  Buffer* const held =
      buffer_ != nullptr ? buffer_ : allocator.allocate(DataType::kUInt8, 1);
  if (held == nullptr) return false;
  const bool fits = allocator.charge(*held, bytes - before);
  if (fits) {
    buffer_ = held;
  } else if (held != buffer_) {
    allocator.deallocate(held);
  }
  return fits;
}

void MemoryCharge::clear() noexcept {
  if (Buffer* const held = std::exchange(buffer_, nullptr))
    held->allocator->deallocate(held);
}

Status out_of_memory(const Allocator& memory, std::string_view what,
                     size_t bytes) {
  return error(Code::kResourceExhausted,
               "out of memory: {} needs {} bytes of {}", what, bytes,
               memory.describe());
}

}  // namespace tagflow
