#include "graph/file/tensor_proto.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "graph/dtype_visit.h"
#include "graph/proto/tensor.pb.h"

namespace tagflow::graph {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensor_content is copied as it is");

using tensorflow::TensorProto;

// Up to this size elements are written one by one, which is shorter and
// readable as text.
constexpr int64_t kMaxListed = 8;

// Calls f with the C++ type of each element type in memory, including types
// without kernels; false for handles and unknown types.
template <class F>
bool visit_stored(DataType t, F&& f) {
  switch (t) {
    case DataType::kQInt8:
      f(TypeTag<int8_t>{});
      return true;
    case DataType::kQUInt8:
      f(TypeTag<uint8_t>{});
      return true;
    case DataType::kQInt16:
      f(TypeTag<int16_t>{});
      return true;
    case DataType::kQUInt16:
      f(TypeTag<uint16_t>{});
      return true;
    case DataType::kQInt32:
      f(TypeTag<int32_t>{});
      return true;
    default:
      return visit_dtype(t, f);
  }
}

template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;
template <class T>
inline constexpr bool kIsHalf =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The field that holds values of a T.
template <class T, class Proto>
auto& field(Proto& p) {
  constexpr bool kMutable = !std::is_const_v<Proto>;
#define TAGFLOW_FIELD(NAME)     \
  if constexpr (kMutable)       \
    return *p.mutable_##NAME(); \
  else                          \
    return p.NAME()
  if constexpr (std::is_same_v<T, float>) {
    TAGFLOW_FIELD(float_val);
  } else if constexpr (std::is_same_v<T, double>) {
    TAGFLOW_FIELD(double_val);
  } else if constexpr (std::is_same_v<T, std::string>) {
    TAGFLOW_FIELD(string_val);
  } else if constexpr (std::is_same_v<T, Complex64>) {
    TAGFLOW_FIELD(scomplex_val);
  } else if constexpr (std::is_same_v<T, Complex128>) {
    TAGFLOW_FIELD(dcomplex_val);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    TAGFLOW_FIELD(int64_val);
  } else if constexpr (std::is_same_v<T, bool>) {
    TAGFLOW_FIELD(bool_val);
  } else if constexpr (kIsHalf<T>) {
    TAGFLOW_FIELD(half_val);
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    TAGFLOW_FIELD(uint32_val);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    TAGFLOW_FIELD(uint64_val);
  } else {
    TAGFLOW_FIELD(int_val);
  }
#undef TAGFLOW_FIELD
}

template <class T>
int64_t listed_count(const TensorProto& proto) {
  return field<T>(proto).size() / (kIsComplex<T> ? 2 : 1);
}

// Value `i` of the field; false if it is outside the range of T.
template <class T>
bool get_value(const TensorProto& proto, int i, T& value) {
  const auto& list = field<T>(proto);
  if constexpr (kIsComplex<T>) {
    value = T(list[2 * i], list[2 * i + 1]);
  } else if constexpr (kIsHalf<T>) {
    const int32_t bits = list[i];
    value = std::bit_cast<T>(uint16_t(bits));
    return bits >= 0 && bits <= 0xffff;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) < 4 &&
                       !std::is_same_v<T, bool>) {
    value = T(list[i]);
    return int32_t(value) == list[i];
  } else {
    value = list[i];
  }
  return true;
}

template <class T>
bool is_nan(const T& value) {
  return !(value == value);
}

template <class T>
void add_value(const T& value, TensorProto* proto) {
  auto& list = field<T>(*proto);
  if constexpr (kIsComplex<T>) {
    list.Add(value.real());
    list.Add(value.imag());
  } else if constexpr (std::is_same_v<T, std::string>) {
    *list.Add() = value;
  } else if constexpr (kIsHalf<T>) {
    list.Add(std::bit_cast<uint16_t>(value));
  } else {
    list.Add(value);
  }
}

// Subtracts the memory of the elements, without the contents of long strings.
Status take_bytes(const std::string& what, int64_t count, int64_t each,
                  int64_t* budget) {
  const auto bytes = checked_multiply(count, each);
  if (bytes && *bytes <= *budget) {
    *budget -= *bytes;
    return {};
  }
  return error(Code::kResourceExhausted,
               "{} is too large: {} elements of {} bytes, {} bytes are left "
               "for constants",
               what, count, each, *budget);
}

// Subtracts memory of elements that are not in the message.
Status take_repeated(const std::string& what, int64_t bytes, int64_t* budget) {
  if (budget == nullptr) return {};
  if (bytes <= *budget) {
    *budget -= bytes;
    return {};
  }
  return error(Code::kResourceExhausted,
               "{} is too large: it repeats a value in {} bytes, {} are left "
               "for such elements of constants",
               what, bytes, *budget);
}

// How many bytes of elements are not in the message, without the contents of
// long strings.
int64_t repeated_bytes(const TensorProto& proto, DataType dtype,
                       int64_t count) {
  if (!proto.tensor_content().empty()) return 0;
  int64_t listed = 0;
  visit_stored(dtype, [&]<class T>(TypeTag<T>) {
    listed = std::min(count, listed_count<T>(proto));
  });
  return (count - listed) * int64_t(dtype_size(dtype));
}

// DataLoss if the content cannot be that of so many elements: they need no
// memory then.
Status check_content_size(const std::string& content, const std::string& what,
                          DataType dtype, int64_t count) {
  if (content.empty()) return {};
  if (dtype == DataType::kString) {
    if (uint64_t(count) <= content.size()) return {};
    return error(Code::kDataLoss, "tensor_content of {} ends inside a string",
                 what);
  }
  if (content.size() == size_t(count) * dtype_size(dtype)) return {};
  return error(Code::kDataLoss,
               "tensor_content of {} has {} bytes, {} are wanted", what,
               content.size(), size_t(count) * dtype_size(dtype));
}

Status copy_content(const std::string& content, const std::string& what,
                    Tensor& tensor) {
  if (tensor.dtype() == DataType::kBool &&
      std::ranges::any_of(content, [](char c) { return c != 0 && c != 1; }))
    return error(Code::kDataLoss,
                 "tensor_content of {} has a byte that is not a bool", what);
  if (!content.empty())
    std::memcpy(tensor.mutable_raw(), content.data(), content.size());
  return {};
}

// Strings as content: all lengths as base-128 numbers, then all bytes.
Status split_content(const std::string& content, const std::string& what,
                     Tensor& tensor) {
  const Status bad =
      error(Code::kDataLoss, "tensor_content of {} ends inside a string", what);
  size_t at = 0;
  std::vector<size_t> lengths;
  const auto strings = tensor.mutable_flat<std::string>();
  for (size_t i = 0; i < strings.size(); ++i) {
    uint64_t length = 0;
    int shift = 0;
    uint8_t byte = 0x80;
    for (; (byte & 0x80) != 0; shift += 7) {
      if (at == content.size() || shift > 28) return bad;
      byte = uint8_t(content[at++]);
      length |= uint64_t(byte & 0x7f) << shift;
    }
    lengths.push_back(size_t(length));
  }
  for (size_t i = 0; i < strings.size(); ++i) {
    if (lengths[i] > content.size() - at) return bad;
    strings[i] = content.substr(at, lengths[i]);
    at += lengths[i];
  }
  if (at == content.size()) return {};
  return error(Code::kDataLoss, "tensor_content of {} has {} bytes too many",
               what, content.size() - at);
}

template <class T>
Status copy_values(const TensorProto& proto, const std::string& what,
                   Tensor& tensor, int64_t* budget, int64_t* repeated) {
  const int64_t count = tensor.num_elements();
  const int64_t listed = listed_count<T>(proto);
  if (kIsComplex<T> && field<T>(proto).size() % 2 != 0)
    return invalid_argument("{} has half a complex value", what);
  // Some files have one value although there are no elements.
  if (count == 0 && listed == 1) return {};
  if (listed > count)
    return invalid_argument("{} has {} values for {} elements", what, listed,
                            count);
  T value{};
  T* elements = tensor.mutable_data<T>();
  for (int64_t i = 0; i < listed; ++i) {
    if (!get_value(proto, int(i), value))
      return invalid_argument("value {} of {} does not fit the type", i, what);
    elements[i] = value;
  }
  if constexpr (std::is_same_v<T, std::string>) {
    TAGFLOW_RETURN_IF_ERROR(
        take_bytes(what, count - listed, int64_t(value.size()), budget));
    TAGFLOW_RETURN_IF_ERROR(take_repeated(
        what, (count - listed) * int64_t(value.size()), repeated));
  }
  std::fill(elements + listed, elements + count, value);
  return {};
}

}  // namespace

Result<DataType> dtype_from_proto(int number) {
  // The types that files may have, supported or not, and their references.
  if (number < 0 || number >= 2 * int(kRefOffset))
    return invalid_argument("{} is not a number of a data type", number);
  return DataType(number);
}

Result<PartialShape> shape_from_proto(
    const tensorflow::TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() == 0) return PartialShape();
    return invalid_argument("a shape of unknown rank has {} dimensions",
                            proto.dim_size());
  }
  if (proto.dim_size() > kMaxRank)
    return invalid_argument("rank {} is over the limit of {}", proto.dim_size(),
                            kMaxRank);
  Shape::Dims dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return PartialShape::make(std::span(dims.data(), dims.size()));
}

void shape_to_proto(const PartialShape& shape,
                    tensorflow::TensorShapeProto* proto) {
  if (!shape.has_rank()) {
    proto->set_unknown_rank(true);
    return;
  }
  for (int64_t dim : shape.dims()) proto->add_dim()->set_size(dim);
}

Result<Tensor> tensor_from_proto(const TensorProto& proto, int64_t* budget,
                                 int64_t* repeated) {
  TAGFLOW_ASSIGN(const DataType dtype, dtype_from_proto(proto.dtype()));
  TAGFLOW_ASSIGN(const PartialShape partial,
                 shape_from_proto(proto.tensor_shape()));
  const std::string what = "a tensor of " + dtype_name(dtype);
  if (!partial.fully_known())
    return invalid_argument("{} has the shape {}, which is not known", what,
                            partial.to_string());
  TAGFLOW_ASSIGN(const Shape shape, Shape::make(partial.dims()));
  if (remove_ref(dtype) == DataType::kResource ||
      remove_ref(dtype) == DataType::kVariant)
    return error(Code::kUnimplemented,
                 "{} cannot be read: its handles mean nothing outside the "
                 "process that wrote it",
                 what);
  if (is_ref(dtype) || !is_known(dtype))
    return error(Code::kUnimplemented, "{} is not supported", what);
  const std::string whole = what + shape.to_string();
  TAGFLOW_RETURN_IF_ERROR(take_bytes(whole, shape.num_elements(),
                                     int64_t(dtype_size(dtype)), budget));
  TAGFLOW_RETURN_IF_ERROR(check_content_size(proto.tensor_content(), whole,
                                             dtype, shape.num_elements()));
  TAGFLOW_RETURN_IF_ERROR(take_repeated(
      whole, repeated_bytes(proto, dtype, shape.num_elements()), repeated));
  TAGFLOW_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape));
  if (!proto.tensor_content().empty()) {
    TAGFLOW_RETURN_IF_ERROR(
        dtype == DataType::kString
            ? split_content(proto.tensor_content(), whole, tensor)
            : copy_content(proto.tensor_content(), whole, tensor));
    return tensor;
  }
  Status status;
  visit_stored(dtype, [&]<class T>(TypeTag<T>) {
    status = copy_values<T>(proto, whole, tensor, budget, repeated);
  });
  if (!status.ok()) return status;
  return tensor;
}

Status tensor_to_proto(const Tensor& tensor, TensorProto* proto) {
  proto->set_dtype(tensorflow::DataType(tensor.dtype()));
  if (!tensor.valid()) return {};
  shape_to_proto(tensor.shape(), proto->mutable_tensor_shape());
  const bool known = visit_stored(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, std::string>) {
      // As text, a NaN would lose its bits.
      if (tensor.num_elements() > kMaxListed ||
          std::ranges::any_of(tensor.flat<T>(), is_nan<T>)) {
        proto->set_tensor_content(tensor.raw(), tensor.bytes());
        return;
      }
    }
    for (const T& value : tensor.flat<T>()) add_value(value, proto);
  });
  if (known) return {};
  return error(Code::kUnimplemented,
               "a tensor of {} cannot be written: its handles mean nothing "
               "outside this process",
               dtype_name(tensor.dtype()));
}

}  // namespace tagflow::graph
