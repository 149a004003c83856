// Tensor: a typed n-dimensional array; the value that a token carries.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "graph/allocator.h"
#include "graph/dtype.h"
#include "graph/shape.h"

namespace tagflow {

// A value of 32 bytes. Scalars and vectors of at most 24 bytes of a plain type
// live inline, so that a loop counter never touches the heap; everything else
// is a reference to a Buffer that copies share. Elements are row-major.
//
// Immutable by convention once shared: only who made a tensor, or holds the
// last reference (unique()), writes to it.
//
// Thread-compatible; distinct copies may be used from distinct threads.
class Tensor {
 public:
  // The empty tensor: no type, no elements. valid() is false.
  Tensor() noexcept : dtype_(DataType::kInvalid), storage_(kNone) {}
  Tensor(const Tensor& other) noexcept {
    copy_bits(other);
    if (storage_ == kHeap) share();
  }
  Tensor(Tensor&& other) noexcept {
    copy_bits(other);
    other.storage_ = kNone;
    other.dtype_ = DataType::kInvalid;
  }
  Tensor& operator=(const Tensor& other) noexcept {
    if (this != &other) {
      Tensor copy(other);
      *this = std::move(copy);
    }
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    if (this != &other) {
      if (storage_ == kHeap) drop();
      copy_bits(other);
      other.storage_ = kNone;
      other.dtype_ = DataType::kInvalid;
    }
    return *this;
  }
  ~Tensor() {
    if (storage_ == kHeap) drop();
  }

  // Elements of plain types are uninitialised, others default-constructed.
  // ResourceExhausted where memory is; InvalidArgument where the bytes
  // overflow. REQUIRES: dtype is not a reference type.
  static Result<Tensor> allocate(DataType dtype, const Shape& shape,
                                 Allocator& allocator = host_allocator());
  // The same for sizes the program itself chose; ends the process where
  // memory is exhausted.
  static Tensor make(DataType dtype, const Shape& shape);
  // A scalar of a plain C++ element type.
  template <class T>
  static Tensor scalar(T value);
  static Tensor scalar(std::string value);
  static Tensor scalar(const char* value) { return scalar(std::string(value)); }
  // Row-major elements of `shape`. REQUIRES: as many values as elements.
  template <class T>
  static Tensor of(const Shape& shape, std::span<const T> values);
  template <class T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values) {
    return of<T>(shape, std::span<const T>(values.begin(), values.size()));
  }
  // A vector of the values.
  template <class T>
  static Tensor vector(std::initializer_list<T> values) {
    return of<T>({int64_t(values.size())}, values);
  }

  bool valid() const { return storage_ != kNone; }
  DataType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  // REQUIRES: 0 <= i < rank()
  int64_t dim(int i) const {
    if (storage_ == kInline) return inline_dim_;
    return rank_ <= kInlineDims ? heap_.dims[i] : heap_dim(i);
  }
  Shape shape() const;
  int64_t num_elements() const;
  size_t bytes() const { return size_t(num_elements()) * dtype_size(dtype_); }

  const void* raw() const {
    return storage_ == kInline ? static_cast<const void*>(inline_)
                               : heap_.buffer->data;
  }
  // REQUIRES: nobody else shares the elements; see unique().
  void* mutable_raw() {
    return storage_ == kInline ? static_cast<void*>(inline_)
                               : heap_.buffer->data;
  }
  // REQUIRES: dtype() is that of T.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(raw());
  }
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(mutable_raw());
  }
  // All elements, row-major.
  template <class T>
  std::span<const T> flat() const {
    return {data<T>(), size_t(num_elements())};
  }
  template <class T>
  std::span<T> mutable_flat() {
    return {mutable_data<T>(), size_t(num_elements())};
  }
  // The first element. REQUIRES: there is one.
  template <class T>
  const T& scalar_value() const {
    return *data<T>();
  }
  bool is_scalar() const { return rank_ == 0; }
  // A plain scalar held inline: the fast case of element-wise kernels.
  bool is_inline_scalar() const { return storage_ == kInline && rank_ == 0; }

  // No other tensor shares the elements (always so where they are inline).
  bool unique() const {
    return storage_ != kHeap ||
           heap_.buffer->refs.load(std::memory_order_acquire) == 1;
  }
  // The same elements under another shape. InvalidArgument where the number
  // of elements differs.
  Result<Tensor> reshaped(const Shape& shape) const;
  // The same bytes as another plain type of the same element size.
  // REQUIRES: dtype_size(dtype) == dtype_size(this->dtype())
  Tensor with_dtype(DataType dtype) const;
  // A deep copy.
  Tensor clone() const;
  // The buffer, or null where the elements are inline or absent.
  const Buffer* buffer() const {
    return storage_ == kHeap ? heap_.buffer : nullptr;
  }
  // "float[2,3]".
  std::string describe() const;
  // describe() and the first `limit` elements.
  std::string to_string(int limit = 10) const;

 private:
  enum Storage : uint8_t { kNone, kInline, kHeap };
  static constexpr size_t kInlineBytes = 24;
  static constexpr int kInlineDims = 2;

  struct SharedDims;  // dimensions of rank > 2, shared by copies
  struct Heap {
    Buffer* buffer;
    union {
      int64_t dims[kInlineDims];
      SharedDims* shared_dims;
    };
  };

  void copy_bits(const Tensor& other) {
    std::memcpy(static_cast<void*>(this), &other, sizeof(Tensor));
  }
  void share() const;
  void drop();
  int64_t heap_dim(int i) const;
  // Takes over one reference to `buffer`.
  static Tensor adopt(DataType dtype, const Shape& shape, Buffer* buffer);

  DataType dtype_;
  uint8_t storage_;
  uint8_t rank_ = 0;
  uint8_t unused_ = 0;
  uint32_t inline_dim_ = 0;  // of an inline vector
  union {
    alignas(8) std::byte inline_[kInlineBytes];
    Heap heap_;
  };
};
static_assert(sizeof(Tensor) == 32);

template <class T>
Tensor Tensor::scalar(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kInlineBytes);
  Tensor tensor;
  tensor.dtype_ = kDataTypeOf<T>;
  tensor.storage_ = kInline;
  std::memcpy(tensor.inline_, &value, sizeof(T));
  return tensor;
}

template <class T>
Tensor Tensor::of(const Shape& shape, std::span<const T> values) {
  Tensor tensor = make(kDataTypeOf<T>, shape);
  std::copy(values.begin(), values.end(), tensor.mutable_data<T>());
  return tensor;
}

// Same dtype, shape and element bytes (strings by value). Handles compare by
// identity.
bool identical(const Tensor& a, const Tensor& b);

}  // namespace tagflow
