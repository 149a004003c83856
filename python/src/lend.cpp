#include "python/src/lend.h"

#include <algorithm>
#include <vector>

namespace tagflow::python {
namespace {

constexpr size_t kLeastLent = 4096;

// Only wraps memory: allocate() returns the buffer that the caller prepared.
class Lender final : public Allocator {
 public:
  Buffer* allocate(DataType, int64_t) override { return next; }
  void deallocate(Buffer* buffer) override { delete buffer; }
  std::string describe() const override { return "memory of Python"; }
  Buffer* next = nullptr;
};

// Tensors may outlive the interpreter's modules.
Lender& lender() {
  static auto* const made = new Lender;
  return *made;
}

struct Loan {
  Buffer* buffer = nullptr;
  PyObject* owner = nullptr;
};
std::vector<Loan>& loans() {
  static auto* const made = new std::vector<Loan>;
  return *made;
}

}  // namespace

bool can_lend(const void* data, size_t bytes, DataType dtype) {
  return bytes >= kLeastLent && is_plain(dtype) &&
         reinterpret_cast<uintptr_t>(data) % 64 == 0;
}

Result<Tensor> lend(PyObject* owner, const void* data, DataType dtype,
                    const Shape& shape) {
  sweep();
  auto* buffer = new Buffer;
  buffer->dtype = dtype;
  buffer->count = shape.num_elements();
  buffer->bytes = size_t(buffer->count) * dtype_size(dtype);
  buffer->data = const_cast<void*>(data);
  buffer->allocator = &lender();
  lender().next = buffer;
  auto tensor = Tensor::allocate(dtype, shape, lender());
  lender().next = nullptr;
  if (!tensor.ok()) {
    delete buffer;
    return tensor;
  }
  buffer->refs.fetch_add(1, std::memory_order_relaxed);
  Py_INCREF(owner);
  loans().push_back({buffer, owner});
  return tensor;
}

void sweep() noexcept {
  std::vector<Loan>& all = loans();
  for (size_t i = all.size(); i-- > 0;) {
    const Loan loan = all[i];
    if (loan.buffer->refs.load(std::memory_order_acquire) != 1) continue;
    all.erase(all.begin() + ptrdiff_t(i));
    lender().deallocate(loan.buffer);
    Py_DECREF(loan.owner);  // may run code of Python, which may lend, too
    i = std::min(i, all.size());
  }
}

}  // namespace tagflow::python
