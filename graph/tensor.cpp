#include "graph/tensor.h"

#include <algorithm>

#include "graph/dtype_visit.h"
#include "graph/handle.h"

namespace tagflow {

// Dimensions of one tensor and its copies, in one allocation.
struct Tensor::SharedDims {
  std::atomic<uint32_t> refs{1};
  int64_t dims[1];  // rank() elements in fact

  static SharedDims* make(std::span<const int64_t> dims) {
    void* block = ::operator new(sizeof(SharedDims) +
                                 (dims.size() - 1) * sizeof(int64_t));
    auto* shared = new (block) SharedDims;
    std::copy(dims.begin(), dims.end(), shared->dims);
    return shared;
  }
};

void Tensor::share() const {
  heap_.buffer->refs.fetch_add(1, std::memory_order_relaxed);
  if (header_.rank > kInlineDims)
    heap_.shared_dims->refs.fetch_add(1, std::memory_order_relaxed);
}

void Tensor::drop() {
  if (header_.rank > kInlineDims &&
      heap_.shared_dims->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    heap_.shared_dims->~SharedDims();
    ::operator delete(heap_.shared_dims);
  }
  Buffer* buffer = heap_.buffer;
  if (buffer->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
    buffer->allocator->deallocate(buffer);
}

int64_t Tensor::heap_dim(int i) const { return heap_.shared_dims->dims[i]; }

Tensor Tensor::adopt(DataType dtype, const Shape& shape, Buffer* buffer) {
  Tensor tensor;
  tensor.header_.dtype = dtype;
  tensor.header_.storage = kHeap;
  tensor.header_.rank = uint8_t(shape.rank());
  tensor.heap_.buffer = buffer;
  if (shape.rank() > kInlineDims) {
    tensor.heap_.shared_dims = SharedDims::make(shape.dims());
  } else {
    for (int i = 0; i < shape.rank(); ++i) tensor.heap_.dims[i] = shape.dim(i);
  }
  return tensor;
}

namespace {

// The number of elements; an error for a shape that violates the invariants of
// Shape, whose number of elements would overflow.
Result<int64_t> checked_count(const Shape& shape) {
  uint64_t count = 1;
  bool suspect = shape.rank() > kMaxRank;
  for (const int64_t dim : shape.dims())
    suspect |= __builtin_mul_overflow(count, uint64_t(dim), &count) || dim < 0;
  if (suspect) [[unlikely]]
    TAGFLOW_RETURN_IF_ERROR(Shape::make(shape.dims()).status());
  return int64_t(count);
}

}  // namespace

Result<Tensor> Tensor::allocate(DataType dtype, const Shape& shape,
                                Allocator& allocator) {
  const size_t size = dtype_size(dtype);
  if (size == 0 || is_ref(dtype))
    return invalid_argument("[tensor] cannot allocate elements of type {}",
                            dtype_name(dtype));
  TAGFLOW_ASSIGN(const int64_t count, checked_count(shape));
  const auto bytes = checked_multiply(count, int64_t(size));
  if (!bytes)
    return error(Code::kResourceExhausted,
                 "[tensor] the bytes of {}{} overflow", dtype_name(dtype),
                 shape.to_string());
  if (size_t(*bytes) <= kInlineBytes && shape.rank() <= 1 && is_plain(dtype) &&
      allocator.host_visible()) {
    Tensor tensor;
    tensor.header_.dtype = dtype;
    tensor.header_.storage = kInline;
    tensor.header_.rank = uint8_t(shape.rank());
    tensor.header_.inline_dim = uint32_t(count);
    return tensor;
  }
  Buffer* buffer = allocator.allocate(dtype, count);
  if (buffer == nullptr)
    return error(Code::kResourceExhausted,
                 "[tensor] out of memory: {}{} needs {} bytes of {}",
                 dtype_name(dtype), shape.to_string(), *bytes,
                 allocator.describe());
  return adopt(dtype, shape, buffer);
}

Tensor Tensor::make(DataType dtype, const Shape& shape) {
  Result<Tensor> tensor = allocate(dtype, shape);
  if (!tensor.ok()) {
    fmt::print(stderr, "{}\n", tensor.status().to_string());
    std::abort();
  }
  return std::move(tensor).value();
}

Tensor Tensor::scalar(std::string value) {
  Tensor tensor = make(DataType::kString, {});
  *tensor.mutable_data<std::string>() = std::move(value);
  return tensor;
}

Shape Tensor::shape() const {
  Shape shape;
  for (int i = 0; i < header_.rank; ++i) shape.add_dim(dim(i));
  return shape;
}

int64_t Tensor::num_elements() const {
  if (header_.storage == kNone) return 0;
  // Unsigned: partial products of an empty tensor may overflow.
  uint64_t count = 1;
  for (int i = 0; i < header_.rank; ++i) count *= uint64_t(dim(i));
  return int64_t(count);
}

Result<Tensor> Tensor::reshaped(const Shape& shape) const {
  if (shape.num_elements() != num_elements())
    return invalid_argument("[reshape] {} has {} elements, the shape {} {}",
                            describe(), num_elements(), shape.to_string(),
                            shape.num_elements());
  if (header_.storage == kHeap) {
    heap_.buffer->refs.fetch_add(1, std::memory_order_relaxed);
    return adopt(header_.dtype, shape, heap_.buffer);
  }
  TAGFLOW_ASSIGN(Tensor tensor, allocate(header_.dtype, shape));
  std::memcpy(tensor.mutable_raw(), raw(), bytes());
  return tensor;
}

Tensor Tensor::with_dtype(DataType dtype) const {
  Tensor tensor = *this;
  tensor.header_.dtype = dtype;
  return tensor;
}

Tensor Tensor::clone() const {
  if (header_.storage != kHeap) return *this;
  Tensor copy = make(header_.dtype, shape());
  switch (header_.dtype) {
    case DataType::kString:
      std::ranges::copy(flat<std::string>(), copy.mutable_data<std::string>());
      break;
    case DataType::kResource:
      std::ranges::copy(flat<ResourceHandle>(),
                        copy.mutable_data<ResourceHandle>());
      break;
    case DataType::kVariant:
      std::ranges::copy(flat<Variant>(), copy.mutable_data<Variant>());
      break;
    default:
      std::memcpy(copy.mutable_raw(), raw(), bytes());
  }
  return copy;
}

Status Tensor::check_read(DataType wanted, bool one_element) const {
  if (!valid()) return invalid_argument("[tensor] the tensor is empty");
  if (dtype() != wanted)
    return invalid_argument("[tensor] {} cannot be read as {}", describe(),
                            dtype_name(wanted));
  if (one_element && num_elements() != 1)
    return invalid_argument("[tensor] {} has not exactly one element",
                            describe());
  return {};
}

std::string Tensor::describe() const {
  if (!valid()) return "<no tensor>";
  return dtype_name(header_.dtype) + shape().to_string();
}

namespace {

template <class T>
std::string element_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return fmt::format("{:?}", value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, Complex64> ||
                       std::is_same_v<T, Complex128>) {
    return fmt::format("({},{})", value.real(), value.imag());
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return fmt::format("{}", float(value));
  } else {
    return fmt::format("{}", value);
  }
}

template <class T>
std::string handle_text(const T& handle) {
  return handle.get() ? handle.get()->describe() : "<empty>";
}

}  // namespace

std::string Tensor::to_string(int limit) const {
  if (!valid()) return describe();
  if (buffer() != nullptr && !buffer()->allocator->host_visible())
    return describe() + " on a device";
  std::string text = describe() + (is_scalar() ? " " : " {");
  const int64_t count = num_elements();
  for (int64_t i = 0; i < std::min<int64_t>(count, limit); ++i) {
    if (i > 0) text += " ";
    if (header_.dtype == DataType::kResource) {
      text += handle_text(data<ResourceHandle>()[i]);
    } else if (header_.dtype == DataType::kVariant) {
      text += handle_text(data<Variant>()[i]);
    } else {
      const bool known = visit_dtype(header_.dtype, [&]<class T>(TypeTag<T>) {
        text += element_text(data<T>()[i]);
      });
      if (!known) text += "?";
    }
  }
  if (count > limit) text += " ...";
  return is_scalar() ? text : text + "}";
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.valid() != b.valid()) return false;
  if (!a.valid()) return true;
  if (!(a.shape() == b.shape())) return false;
  const int64_t count = a.num_elements();
  switch (a.dtype()) {
    case DataType::kString:
      return std::ranges::equal(a.flat<std::string>(), b.flat<std::string>());
    case DataType::kResource:
      for (int64_t i = 0; i < count; ++i)
        if (a.data<ResourceHandle>()[i].get() !=
            b.data<ResourceHandle>()[i].get())
          return false;
      return true;
    case DataType::kVariant:
      for (int64_t i = 0; i < count; ++i)
        if (a.data<Variant>()[i].get() != b.data<Variant>()[i].get())
          return false;
      return true;
    default:
      return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }
}

}  // namespace tagflow
