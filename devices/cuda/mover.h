// CudaMover: what kernels of the CPU plan, carried out on a GPU.
#pragma once

#include <utility>

#include "devices/cuda/blas.h"
#include "devices/cuda/memory.h"
#include "devices/element_mover.h"

namespace tagflow::devices {

// The memory of a GPU, as an allocator whose elements can be moved: for
// contexts of kernels that are the CPU's own. Everything is enqueued on the
// lane `compute`. For the thread that launches.
class CudaMover final : public Allocator, public ElementMover {
 public:
  // REQUIRES: the memory outlives it.
  explicit CudaMover(CudaMemory& memory) : memory_(memory) {}
  ~CudaMover() override;
  CudaMover(const CudaMover&) = delete;
  CudaMover& operator=(const CudaMover&) = delete;

  // Buffers are the memory's: they may outlive this.
  Buffer* allocate(DataType dtype, int64_t count) override {
    return memory_.allocate(dtype, count);
  }
  void deallocate(Buffer* buffer) override { memory_.deallocate(buffer); }
  bool host_visible() const override { return false; }
  const Allocator& owner() const override { return memory_; }
  std::string describe() const override { return memory_.describe(); }

  void move(const StridedCopy& copy, const Tensor& from, Tensor& to) override;
  void clear(Tensor& to) override;
  // The first error of move() and clear() since this was called last.
  cudaError_t take_error() { return std::exchange(error_, cudaSuccess); }
  // By cuBLAS, 16-bit floats with sums in float. Unimplemented for all but
  // floating types.
  Status multiply(const KernelContext& context, const ProductBatch& batch,
                  const Tensor& a, const Tensor& b, Tensor& out) override;
  Status add(const KernelContext& context, const Tensor& a, const Tensor& b,
             bool subtracts, Tensor& out) override;
  Status train(const KernelContext& context,
               const DenseTraining& training) override;

 private:
  void note(cudaError_t result) {
    if (error_ == cudaSuccess) error_ = result;
  }
  // For the first product, which takes long.
  Status start_blas();
  // What a kernel can read: the tensor, or a copy of what is the host's and
  // too large to travel with the launch.
  Result<Tensor> readable(const Tensor& tensor);
  // The bytes of the tensor are there when this launch is done: it may be part
  // of a container or a variable, of which nobody else is told.
  void note_written(const Tensor& tensor) {
    if (memory_.holds(tensor))
      memory_.note_ready(tensor, memory_.compute(), memory_.compute().next());
  }

  CudaMemory& memory_;
  cudaError_t error_ = cudaSuccess;
  const BlasLibrary* blas_ = nullptr;  // where there is a handle
  cublasHandle_t handle_ = nullptr;
  bool blas_started_ = false;
};

}  // namespace tagflow::devices
