#include "devices/cuda/memory.h"

#include <limits>
#include <utility>

#include "devices/cuda/status.h"

namespace tagflow::devices {

struct CudaMemory::CudaBuffer : Buffer {
  // The ticket and, in the last bit, whether it is one of `arrivals`.
  std::atomic<uint64_t> ready{0};
  CudaBuffer* next = nullptr;  // in the list of buffers to be freed
};

Result<CudaMemory::Owner> CudaMemory::make(Options options) {
  Owner memory(new CudaMemory(std::move(options)));
  TAGFLOW_RETURN_IF_ERROR(memory->open());
  return memory;
}

Status CudaMemory::open() {
  const OnDevice on(options_.device);
  int has_pools = 0;
  TAGFLOW_RETURN_IF_ERROR(cuda_status(
      cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported,
                             options_.device),
      "asking for memory pools"));
  if (has_pools == 0)
    return error(Code::kFailedPrecondition,
                 "[cuda] device {} cannot allocate memory in stream order",
                 options_.device);
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.handleTypes = cudaMemHandleTypeNone;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = options_.device;
  TAGFLOW_RETURN_IF_ERROR(
      cuda_status(cudaMemPoolCreate(&pool_, &props), "making a memory pool"));
  // Freed memory stays in the pool, for the next allocation.
  uint64_t kept = std::numeric_limits<uint64_t>::max();
  TAGFLOW_RETURN_IF_ERROR(cuda_status(
      cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept),
      "setting up a memory pool"));
  TAGFLOW_ASSIGN(compute_, CudaLane::make(kLaunchesInFlight));
  TAGFLOW_ASSIGN(arrivals_, CudaLane::make(kArrivalsInFlight));
  return {};
}

CudaMemory::~CudaMemory() {
  const OnDevice on(options_.device);
  // Nobody is left to receive errors.
  free_pending();
  if (arrivals_ != nullptr) (void)arrivals_->drain().ok();
  if (compute_ != nullptr) (void)compute_->drain().ok();
  if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
  // While the GPU is the thread's current one.
  arrivals_.reset();
  compute_.reset();
}

void CudaMemory::close() {
  closed_.store(true, std::memory_order_release);
  free_pending();
  release();
}

void CudaMemory::release() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

Buffer* CudaMemory::allocate(DataType dtype, int64_t count) {
  if (!is_plain(dtype)) return host_allocator().allocate(dtype, count);
  return allocate_on(*compute_, dtype, count);
}

Buffer* CudaMemory::allocate_on(const CudaLane& lane, DataType dtype,
                                int64_t count) {
  const size_t bytes = size_t(count) * dtype_size(dtype);
  Buffer* buffer = try_allocate(lane, dtype, count);
  while (buffer == nullptr && swapper_ != nullptr && swapper_->make_room(bytes))
    buffer = try_allocate(lane, dtype, count);
  return buffer;
}

MemoryStats CudaMemory::stats() const {
  MemoryStats stats = ledger_.stats();
  if (swapper_ != nullptr) swapper_->add_to(stats);
  return stats;
}

Buffer* CudaMemory::try_allocate(const CudaLane& lane, DataType dtype,
                                 int64_t count) {
  const size_t bytes = size_t(count) * dtype_size(dtype);
  auto buffer = std::make_unique<CudaBuffer>();
  const int64_t in_use = ledger_.reserve(bytes);
  if (in_use < 0) return nullptr;
  const OnDevice on(options_.device);
  free_pending();
  if (bytes > 0 && cudaMallocFromPoolAsync(&buffer->data, bytes, pool_,
                                           lane.stream()) != cudaSuccess) {
    cudaGetLastError();  // the return value reports it
    ledger_.give_back(bytes);
    return nullptr;
  }
  ledger_.confirm(in_use);
  buffer->dtype = dtype;
  buffer->count = count;
  buffer->bytes = bytes;
  buffer->allocator = this;
  refs_.fetch_add(1, std::memory_order_relaxed);
  return buffer.release();
}

void CudaMemory::deallocate(Buffer* buffer) {
  ledger_.give_back(buffer->bytes);
  {
    std::lock_guard lock(mutex_);
    auto* freed = static_cast<CudaBuffer*>(buffer);
    freed->next = std::exchange(pending_, freed);
  }
  if (closed_.load(std::memory_order_acquire)) free_pending();
  release();
}

void CudaMemory::free_pending() {
  CudaBuffer* freed = nullptr;
  {
    std::lock_guard lock(mutex_);
    freed = std::exchange(pending_, nullptr);
  }
  if (freed == nullptr) return;
  // Any order will do: frees happen in that of the compute stream.
  const OnDevice on(options_.device);
  while (freed != nullptr) {
    CudaBuffer* const buffer = std::exchange(freed, freed->next);
    // On a GPU that has failed, errors no longer matter.
    (void)hold_for(*buffer, compute_->stream()).ok();
    if (buffer->data != nullptr)
      cudaFreeAsync(buffer->data, compute_->stream());
    delete buffer;
  }
}

std::string CudaMemory::describe() const {
  return options_.name + " (" + to_string(stats()) + ")";
}

void CudaMemory::note_ready(const Tensor& tensor, const CudaLane& lane,
                            uint64_t ticket) {
  auto* buffer = static_cast<CudaBuffer*>(const_cast<Buffer*>(tensor.buffer()));
  buffer->ready.store(ticket << 1 | uint64_t(&lane == arrivals_.get()),
                      std::memory_order_release);
}

Status CudaMemory::hold_for(const CudaBuffer& buffer, cudaStream_t stream) {
  const uint64_t ready = buffer.ready.load(std::memory_order_acquire);
  const CudaLane& lane = (ready & 1) != 0 ? *arrivals_ : *compute_;
  if (lane.stream() == stream) return {};
  return lane.hold(stream, ready >> 1);
}

Status CudaMemory::hold_for(const Tensor& tensor, cudaStream_t stream) {
  if (!holds(tensor)) return {};
  return hold_for(static_cast<const CudaBuffer&>(*tensor.buffer()), stream);
}

}  // namespace tagflow::devices
