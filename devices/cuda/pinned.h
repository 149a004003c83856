// Pinned host memory, which the GPU copies from and to by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "devices/cuda/lane.h"

namespace tagflow::devices {

// A block of it. Movable.
class PinnedBlock {
 public:
  // ResourceExhausted, or Internal, if CUDA cannot allocate it.
  static Result<PinnedBlock> make(size_t bytes);
  PinnedBlock() = default;
  PinnedBlock(PinnedBlock&& other) noexcept;
  PinnedBlock& operator=(PinnedBlock&& other) noexcept;
  ~PinnedBlock();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A block used as a ring, piece by piece, by the copies of a lane: a piece is
// reused when the ticket after it has passed. Only for the lane's own thread.
class PinnedRing {
 public:
  // REQUIRES: the lane outlives it.
  PinnedRing(PinnedBlock block, const CudaLane& lane)
      : block_(std::move(block)), lane_(lane) {}

  // The maximum size of one piece.
  size_t largest() const { return block_.size() / 4; }
  // A piece aligned to 16 bytes; blocks until one is free. REQUIRES: bytes <=
  // largest(), and the ring is not crowded.
  Result<std::byte*> take(size_t bytes);
  // Whether the pieces that were taken since the last close() hold more than a
  // quarter of the ring, so that close() must be called before take().
  bool crowded() const { return open_ > block_.size() / 4; }
  // Records that `ticket` follows all copies of the pieces taken so far.
  void close(uint64_t ticket);

 private:
  // The bytes taken up to a ticket.
  struct Span {
    uint64_t ticket;
    size_t bytes;
  };

  PinnedBlock block_;
  const CudaLane& lane_;
  std::deque<Span> used_;  // the oldest first
  size_t next_ = 0;        // where the next piece begins
  size_t in_use_ = 0;      // bytes before `next_`, wrapping around
  size_t open_ = 0;        // of these, the last, which have no ticket yet
};

}  // namespace tagflow::devices
