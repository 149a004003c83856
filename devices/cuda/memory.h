// CudaMemory: the memory of one GPU, allocated in the order of its streams.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "devices/cuda/lane.h"
#include "devices/memory_ledger.h"
#include "devices/swapper.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Note [Stream order]
//
// Kernels run on the lane `compute`, and their outputs are passed on when they
// are enqueued, long before they are computed. So a buffer records when its
// bytes will be ready, as a ticket of the lane that writes them: `compute`, or
// `arrivals` for copies from the host. A user on another stream makes that
// stream wait for the ticket; on the same stream nobody waits.
//
// A buffer without holders is freed in the order of `compute`: all launches
// that use it were enqueued before, as they held it, and a copy to the host
// holds it until the bytes have arrived. The next launch may then allocate the
// same memory, though the GPU still reads it at that moment.
//
// Frees are recorded, and done before the next allocation: so no worker that
// drops a tensor calls CUDA.
//
// Counts its bytes, with an optional limit. Thread-safe. Tensors may outlive
// the device: the memory is reference-counted by its owner and its buffers.
class CudaMemory final : public Allocator, public SwappableMemory {
 public:
  struct Options {
    std::string name;   // of the device, for messages
    int device = 0;     // CUDA's number
    int64_t limit = 0;  // bytes; 0: all of the GPU's
  };
  struct Release {
    void operator()(CudaMemory* memory) const { memory->close(); }
  };
  using Owner = std::unique_ptr<CudaMemory, Release>;

  // The maximum number of launches that are enqueued and not done.
  static constexpr int kLaunchesInFlight = 1024;
  static constexpr int kArrivalsInFlight = 64;

  // An error if the GPU lacks a feature, or CUDA fails.
  static Result<Owner> make(Options options);
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  // If an allocation does not fit, saved values are swapped out from here on.
  // REQUIRES: nothing was allocated yet.
  void swap_by(std::shared_ptr<Swapper> swapper) {
    swapper_ = std::move(swapper);
  }
  Swapper* swapper() const override { return swapper_.get(); }

  // For launches. Null if the limit or the memory is exhausted. Buffers of
  // strings and handles are in the host's memory.
  Buffer* allocate(DataType dtype, int64_t count) override;
  void deallocate(Buffer* buffer) override;
  bool host_visible() const override { return false; }
  std::string describe() const override;

  // This memory, for buffers that the lane `arrivals` writes.
  Allocator& for_arrivals() { return for_arrivals_; }
  MemoryStats stats() const;
  MemoryLedger& ledger() { return ledger_; }
  int device() const { return options_.device; }
  CudaLane& compute() { return *compute_; }
  CudaLane& arrivals() { return *arrivals_; }

  // Whether the tensor is in this memory.
  bool holds(const Tensor& tensor) const {
    return tensor.buffer() != nullptr && tensor.buffer()->allocator == this;
  }
  // Records that the bytes are ready when the ticket of the lane has passed.
  // REQUIRES: the tensor is held here; the lane is one of the two.
  void note_ready(const Tensor& tensor, const CudaLane& lane, uint64_t ticket);
  // Makes work enqueued on the stream from now on wait for the bytes of the
  // tensor. No effect for tensors that are not held here.
  Status hold_for(const Tensor& tensor, cudaStream_t stream);

 private:
  struct CudaBuffer;
  class ForArrivals final : public Allocator {
   public:
    explicit ForArrivals(CudaMemory& memory) : memory_(memory) {}
    Buffer* allocate(DataType dtype, int64_t count) override {
      return memory_.allocate_on(*memory_.arrivals_, dtype, count);
    }
    void deallocate(Buffer* buffer) override { memory_.deallocate(buffer); }
    bool host_visible() const override { return false; }
    const Allocator& owner() const override { return memory_; }
    std::string describe() const override { return memory_.describe(); }

   private:
    CudaMemory& memory_;
  };

  explicit CudaMemory(Options options)
      : options_(std::move(options)), ledger_(options_.limit, kGranule) {}
  ~CudaMemory() override;

  Status open();
  // Releases the owner's reference.
  void close();
  void release();
  Buffer* allocate_on(const CudaLane& lane, DataType dtype, int64_t count);
  Buffer* try_allocate(const CudaLane& lane, DataType dtype, int64_t count);
  void free_pending();
  Status hold_for(const CudaBuffer& buffer, cudaStream_t stream);

  static constexpr int64_t kGranule = 256;  // bytes, as CUDA's own

  const Options options_;
  MemoryLedger ledger_;
  std::shared_ptr<Swapper> swapper_;
  cudaMemPool_t pool_ = nullptr;
  std::unique_ptr<CudaLane> compute_, arrivals_;
  ForArrivals for_arrivals_{*this};
  std::mutex mutex_;
  CudaBuffer* pending_ = nullptr;  // to be freed; guarded by the mutex
  std::atomic<bool> closed_{false};
  std::atomic<int64_t> refs_{1};  // buffers, and the owner
};

}  // namespace tagflow::devices
