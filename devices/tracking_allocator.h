// TrackingAllocator: memory with a limit, and with statistics.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "devices/memory_ledger.h"
#include "devices/swapper.h"
#include "graph/allocator.h"

namespace tagflow::devices {

// Allocates blocks of the host's memory and counts them as a device's. Buffers
// are aligned to 64 bytes and counted in multiples of it. With a limit for
// memory that the host can read, what lies outside of buffers counts, too.
//
// Tensors may outlive the owner of the allocator. So it is reference-counted:
// the owner and each buffer hold one reference; the last one destroys it.
//
// Thread-safe.
class TrackingAllocator final : public Allocator, public SwappableMemory {
 public:
  struct Options {
    std::string name;          // of the device, for messages
    int64_t limit = 0;         // bytes; 0: none
    bool host_visible = true;  // false: the host must not read it
  };
  struct Release {
    void operator()(TrackingAllocator* allocator) const {
      allocator->release();
    }
  };
  using Owner = std::unique_ptr<TrackingAllocator, Release>;

  static Owner make(Options options);
  TrackingAllocator(const TrackingAllocator&) = delete;
  TrackingAllocator& operator=(const TrackingAllocator&) = delete;

  // If an allocation does not fit, saved values are swapped out from here on.
  // REQUIRES: nothing was allocated yet.
  void swap_by(std::shared_ptr<Swapper> swapper) {
    swapper_ = std::move(swapper);
  }
  Swapper* swapper() const override { return swapper_.get(); }

  // Null if the limit would be exceeded, or the host is out of memory.
  Buffer* allocate(DataType dtype, int64_t count) override;
  void deallocate(Buffer* buffer) override;
  bool host_visible() const override { return options_.host_visible; }
  // "/job:localhost/replica:0/task:0/device:STREAM:0 (12.3 MiB in use of ...)"
  std::string describe() const override;

  // REQUIRES: the owner still exists.
  MemoryStats stats() const;
  MemoryLedger& ledger() { return ledger_; }

 private:
  explicit TrackingAllocator(Options options)
      : Allocator(options.limit > 0 && options.host_visible),
        options_(std::move(options)),
        ledger_(options_.limit) {}
  ~TrackingAllocator() override = default;
  bool take_outside(size_t bytes) override { return ledger_.add(bytes); }
  void give_back_outside(size_t bytes) override { ledger_.subtract(bytes); }
  void release();

  const Options options_;
  MemoryLedger ledger_;
  std::shared_ptr<Swapper> swapper_;
  std::atomic<int64_t> refs_{1};  // buffers, and the owner
};

}  // namespace tagflow::devices
