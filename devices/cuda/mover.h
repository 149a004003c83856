// CudaMover: runs the plans of CPU kernels on a GPU.
#pragma once

#include <utility>

#include "devices/cuda/blas.h"
#include "devices/cuda/memory.h"
#include "devices/element_mover.h"

namespace tagflow::devices {

// The memory of a GPU, as an allocator whose elements can be moved: for
// contexts of CPU kernels. Everything is enqueued on the lane `compute`. Only
// for the launching thread.
class CudaMover final : public Allocator, public ElementMover {
 public:
  // REQUIRES: the memory outlives it.
  explicit CudaMover(CudaMemory& memory) : memory_(memory) {}
  ~CudaMover() override;
  CudaMover(const CudaMover&) = delete;
  CudaMover& operator=(const CudaMover&) = delete;

  // Buffers belong to the memory: they may outlive this.
  Buffer* allocate(DataType dtype, int64_t count) override {
    return memory_.allocate(dtype, count);
  }
  void deallocate(Buffer* buffer) override { memory_.deallocate(buffer); }
  bool host_visible() const override { return false; }
  const Allocator& owner() const override { return memory_; }
  std::string describe() const override { return memory_.describe(); }

  void move(const StridedCopy& copy, const Tensor& from, Tensor& to) override;
  void clear(Tensor& to) override;
  // The first error of the operations enqueued since the last call.
  Status take_error() { return std::exchange(error_, Status()); }
  // Uses cuBLAS; 16-bit floats are summed in float. Unimplemented for all but
  // floating types.
  Status multiply(const KernelContext& context, const ProductBatch& batch,
                  const Tensor& a, const Tensor& b, Tensor& out) override;
  Status add(const KernelContext& context, const Tensor& a, const Tensor& b,
             bool subtracts, Tensor& out) override;
  Status train(const KernelContext& context,
               const DenseTraining& training) override;

 private:
  void note(Status status) {
    if (error_.ok()) error_ = std::move(status);
  }
  void note(cudaError_t result);
  // Called for the first product; takes long.
  Status start_blas();
  // A tensor that a kernel can read once it has arrived: the tensor itself, or
  // a copy of one on the host that is too large to be sent with the launch.
  // That is rare: values that were swapped out, and are summed there.
  Result<Tensor> readable(const Tensor& tensor);
  // Makes the kernel wait for a tensor that it writes, perhaps in place.
  void await(const Tensor& tensor) {
    note(memory_.hold_for(tensor, memory_.compute().stream()));
  }
  // Records at once when its bytes are ready: it may be part of a container or
  // a variable, which other threads read before the launch has been answered.
  void note_written(const Tensor& tensor);

  CudaMemory& memory_;
  Status error_;
  const BlasLibrary* blas_ = nullptr;  // set if there is a handle
  cublasHandle_t handle_ = nullptr;
  bool blas_started_ = false;
};

}  // namespace tagflow::devices
