// Tensor: a typed n-dimensional array; the value that a token carries.
#pragma once

#include <bit>
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
// Immutable by convention once it is shared: only the code that made a tensor,
// or that holds the last reference (unique()), writes to it.
//
// Thread-compatible; distinct copies may be used from distinct threads. It is
// aligned, and written and moved as a whole: a 32-byte load can be forwarded
// from one earlier 32-byte store, but not from several small ones.
class alignas(32) Tensor {
 public:
  // The empty tensor: no type, no elements. valid() is false.
  Tensor() noexcept { clear(); }
  Tensor(const Tensor& other) noexcept {
    copy_bits(other);
    if (header_.storage == kHeap) share();
  }
  Tensor(Tensor&& other) noexcept {
    copy_bits(other);
    other.clear();
  }
  Tensor& operator=(const Tensor& other) noexcept {
    if (other.header_.storage == kHeap) other.share();
    if (header_.storage == kHeap) drop();
    copy_bits(other);
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  ~Tensor() {
    if (header_.storage == kHeap) drop();
  }

  // Elements of plain types are uninitialised, others default-constructed.
  // ResourceExhausted if memory is; InvalidArgument if the number of bytes
  // overflows. REQUIRES: dtype is not a reference type.
  static Result<Tensor> allocate(DataType dtype, const Shape& shape,
                                 Allocator& allocator = host_allocator());
  // As allocate(), for sizes that the program itself chose; ends the process if
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

  // Moves `other` here without the check for self-assignment, since tokens move
  // at every edge. REQUIRES: `other` is another object.
  void take(Tensor& other) noexcept {
    if (header_.storage == kHeap) drop();
    copy_bits(other);
    other.clear();
  }
  // Releases the elements and becomes the empty tensor.
  void reset() noexcept {
    if (header_.storage == kHeap) drop();
    clear();
  }

  bool valid() const { return header_.storage != kNone; }
  DataType dtype() const { return header_.dtype; }
  int rank() const { return header_.rank; }
  // REQUIRES: 0 <= i < rank()
  int64_t dim(int i) const {
    if (header_.storage == kInline) return header_.inline_dim;
    return header_.rank <= kInlineDims ? heap_.dims[i] : heap_dim(i);
  }
  Shape shape() const;
  int64_t num_elements() const;
  size_t bytes() const {
    return size_t(num_elements()) * dtype_size(header_.dtype);
  }

  const void* raw() const {
    return header_.storage == kInline ? static_cast<const void*>(inline_)
                                      : heap_.buffer->data;
  }
  // REQUIRES: nobody else shares the elements; see unique().
  void* mutable_raw() {
    return header_.storage == kInline ? static_cast<void*>(inline_)
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
  // As data(), without a check for inline elements. REQUIRES: it is inline.
  template <class T>
  const T* inline_data() const {
    return reinterpret_cast<const T*>(inline_);
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
  // The first element. REQUIRES: it exists, and dtype() is that of T.
  template <class T>
  const T& scalar_value() const {
    return *data<T>();
  }
  // Checked access, for reading results. InvalidArgument if dtype() is not that
  // of T, or, for item(), if there is not exactly one element.
  template <class T>
  Result<T> item() const;
  // The span is valid as long as this tensor.
  template <class T>
  Result<std::span<const T>> elements() const&;
  template <class T>
  Result<std::span<const T>> elements() const&& = delete;
  bool is_scalar() const { return header_.rank == 0; }
  // An inline plain scalar: the fast case of element-wise kernels.
  bool is_inline_scalar() const {
    return (std::bit_cast<uint64_t>(header_) & kFormMask) == kInlineScalarForm;
  }
  bool is_inline_scalar(DataType dtype) const {
    constexpr uint64_t kMask = kFormMask | kDtypeMask;
    const Header form{dtype, kInline, 0, 0, 0};
    return (std::bit_cast<uint64_t>(header_) & kMask) ==
           std::bit_cast<uint64_t>(form);
  }

  // Whether no other tensor shares the elements; always true for inline ones.
  bool unique() const {
    return header_.storage != kHeap ||
           heap_.buffer->refs.load(std::memory_order_acquire) == 1;
  }
  // The same elements with another shape. InvalidArgument if the number of
  // elements differs.
  Result<Tensor> reshaped(const Shape& shape) const;
  // The same bytes as another plain type of the same element size.
  // REQUIRES: dtype_size(dtype) == dtype_size(this->dtype())
  Tensor with_dtype(DataType dtype) const;
  // A deep copy.
  Tensor clone() const;
  // The buffer, or null if the elements are inline or absent.
  const Buffer* buffer() const {
    return header_.storage == kHeap ? heap_.buffer : nullptr;
  }
  // Notes that strings in the buffer will change, so that what they keep
  // outside of it is counted anew. REQUIRES: it has a buffer, which nobody else
  // holds.
  void expect_change() const { heap_.buffer->is_settled = false; }
  // "float[2,3]".
  std::string describe() const;
  // describe() and the first `limit` elements.
  std::string to_string(int limit = 10) const;

 private:
  enum Storage : uint8_t { kNone, kInline, kHeap };
  static constexpr size_t kInlineBytes = 24;
  static constexpr int kInlineDims = 2;

  struct Header {
    DataType dtype;
    uint8_t storage;
    uint8_t rank;
    uint8_t unused;
    uint32_t inline_dim;  // of an inline vector
  };
  // Masks the part of a header that does not describe the storage.
  static constexpr uint64_t kFormMask =
      std::bit_cast<uint64_t>(Header{DataType(0), 0xff, 0xff, 0, 0});
  static constexpr uint64_t kDtypeMask =
      std::bit_cast<uint64_t>(Header{DataType(0xff), 0, 0, 0, 0});
  static constexpr uint64_t kInlineScalarForm =
      std::bit_cast<uint64_t>(Header{DataType(0), kInline, 0, 0, 0});

  struct SharedDims;  // dimensions of rank > 2, shared by copies
  struct Heap {
    Buffer* buffer;
    union {
      int64_t dims[kInlineDims];
      SharedDims* shared_dims;
    };
  };

  // All bytes as one vector, so that the compiler does not split the move.
  typedef uint64_t Words [[gnu::vector_size(32), gnu::may_alias]];
  void copy_bits(const Tensor& other) {
    *reinterpret_cast<Words*>(this) = reinterpret_cast<const Words&>(other);
  }
  void clear() { header_ = {DataType::kInvalid, kNone, 0, 0, 0}; }
  // Checks that it can be read as `wanted`.
  Status check_read(DataType wanted, bool one_element) const;
  void share() const;
  void drop();
  int64_t heap_dim(int i) const;
  // Takes ownership of one reference to `buffer`.
  static Tensor adopt(DataType dtype, const Shape& shape, Buffer* buffer);

  Header header_;
  union {
    alignas(8) std::byte inline_[kInlineBytes];
    Heap heap_;
  };
};
static_assert(sizeof(Tensor) == 32);

template <class T>
Tensor Tensor::scalar(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kInlineBytes);
  uint64_t value_words[kInlineBytes / sizeof(uint64_t)] = {};
  // Goes through a register if it fits: the processor stalls when a word is
  // read that was just written in pieces.
  if constexpr (sizeof(T) == 1) {
    value_words[0] = std::bit_cast<uint8_t>(value);
  } else if constexpr (sizeof(T) == 2) {
    value_words[0] = std::bit_cast<uint16_t>(value);
  } else if constexpr (sizeof(T) == 4) {
    value_words[0] = std::bit_cast<uint32_t>(value);
  } else {
    std::memcpy(value_words, &value, sizeof(T));
  }
  constexpr Header kHeader{kDataTypeOf<T>, kInline, 0, 0, 0};
  Tensor tensor;
  reinterpret_cast<Words&>(tensor) =
      Words{std::bit_cast<uint64_t>(kHeader), value_words[0], value_words[1],
            value_words[2]};
  return tensor;
}

template <class T>
Tensor Tensor::of(const Shape& shape, std::span<const T> values) {
  Tensor tensor = make(kDataTypeOf<T>, shape);
  std::copy(values.begin(), values.end(), tensor.mutable_data<T>());
  return tensor;
}

template <class T>
Result<T> Tensor::item() const {
  TAGFLOW_RETURN_IF_ERROR(check_read(kDataTypeOf<T>, true));
  return scalar_value<T>();
}

template <class T>
Result<std::span<const T>> Tensor::elements() const& {
  TAGFLOW_RETURN_IF_ERROR(check_read(kDataTypeOf<T>, false));
  return flat<T>();
}

// Same dtype, shape and element bytes (strings by value). Handles compare by
// identity.
bool identical(const Tensor& a, const Tensor& b);

}  // namespace tagflow
