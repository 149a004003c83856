#include "devices/cuda/pinned.h"

#include <utility>

#include "devices/cuda/status.h"

namespace tagflow::devices {

Result<PinnedBlock> PinnedBlock::make(size_t bytes) {
  PinnedBlock block;
  void* data = nullptr;
  TAGFLOW_RETURN_IF_ERROR(
      cuda_status(cudaHostAlloc(&data, bytes, cudaHostAllocDefault),
                  "allocating pinned memory"));
  block.data_ = static_cast<std::byte*>(data);
  block.size_ = bytes;
  return block;
}

PinnedBlock::PinnedBlock(PinnedBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

PinnedBlock& PinnedBlock::operator=(PinnedBlock&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

PinnedBlock::~PinnedBlock() {
  if (data_ != nullptr) cudaFreeHost(data_);
}

Result<std::byte*> PinnedRing::take(size_t bytes) {
  constexpr size_t kAlignment = 16;
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  // If the piece does not fit before the end, the rest stays unused.
  const size_t left = block_.size() - next_;
  const size_t skipped = bytes > left ? left : 0;
  while (in_use_ + skipped + bytes > block_.size()) {
    if (used_.empty())
      return error(Code::kInternal,
                   "[cuda] {} bytes of pinned memory are in use, but no copy "
                   "of them is pending",
                   in_use_);
    TAGFLOW_RETURN_IF_ERROR(lane_.wait(used_.front().ticket));
    in_use_ -= used_.front().bytes;
    used_.pop_front();
  }
  std::byte* piece = block_.data() + (skipped > 0 ? 0 : next_);
  next_ = (next_ + skipped + bytes) % block_.size();
  in_use_ += skipped + bytes;
  open_ += skipped + bytes;
  return piece;
}

void PinnedRing::close(uint64_t ticket) {
  if (open_ == 0) return;
  used_.push_back({ticket, open_});
  open_ = 0;
}

}  // namespace tagflow::devices
