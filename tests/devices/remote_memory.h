// RemoteMemory: memory that only a mover can access, as that of a GPU, for
// tests on machines without one.
#pragma once

#include <set>

#include "devices/element_mover.h"

namespace tagflow::devices {

// Pages that cannot be read or written but within a call of the mover: who
// looks at an element otherwise ends the process. No products.
class RemoteMemory final : public Allocator, public ElementMover {
 public:
  RemoteMemory() = default;
  // REQUIRES: no buffer is left.
  ~RemoteMemory() override;
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  Buffer* allocate(DataType dtype, int64_t count) override;
  void deallocate(Buffer* buffer) override;
  bool host_visible() const override { return false; }

  // How often the mover was called: send() and fetch() do not count.
  int num_calls() const { return num_calls_; }
  bool holds(const Tensor& tensor) const {
    return tensor.buffer() != nullptr && tensor.buffer()->allocator == this;
  }
  // A copy here of what is plain; and of what is here one of the host's.
  Tensor send(const Tensor& tensor);
  Tensor fetch(const Tensor& tensor);

  void move(const StridedCopy& copy, const Tensor& from, Tensor& to) override;
  void clear(Tensor& to) override;
  Status multiply(const KernelContext& context, const ProductBatch& batch,
                  const Tensor& a, const Tensor& b, Tensor& out) override;
  Status add(const KernelContext& context, const Tensor& a, const Tensor& b,
             bool subtracts, Tensor& out) override;
  Status train(const KernelContext& context,
               const DenseTraining& training) override;

 private:
  class Opened;
  void protect(int protection);

  std::set<Buffer*> buffers_;
  int num_calls_ = 0;
};

}  // namespace tagflow::devices
