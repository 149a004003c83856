// Tensors written as JSON literals.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "apps/shared/io/json_tensor.h"
#include "graph/base64.h"
#include "graph/dtype_visit.h"
#include "graph/handle.h"

namespace tagflow::io {
namespace {

using Json = nlohmann::json;

template <class T>
void append_floating(T value, std::string& out) {
  if (std::isnan(value)) {
    out += "\"nan\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    // The shortest text that reads back as the same value.
    const std::string text = fmt::format("{}", value);
    out += text;
    // Makes floating-point numbers differ visibly from integers.
    if (text.find_first_not_of("-0123456789") == text.npos) out += ".0";
  }
}

void append_string(const std::string& value, std::string& out) {
  try {
    out += Json(value).dump();
  } catch (const Json::type_error&) {  // not UTF-8
    out += "{\"base64\": \"" + encode_base64(value) + "\"}";
  }
}

template <class T>
void append_value(const T& value, std::string& out) {
  if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, std::string>) {
    append_string(value, out);
  } else if constexpr (std::is_integral_v<T>) {
    out += std::to_string(value);
  } else if constexpr (requires { typename T::value_type; }) {
    out += "{\"re\": ";
    append_floating(value.real(), out);
    out += ", \"im\": ";
    append_floating(value.imag(), out);
    out += '}';
  } else if constexpr (std::is_same_v<T, double>) {
    append_floating(value, out);
  } else {
    append_floating(float(value), out);
  }
}

// Appends the list of dimension `depth`; `next` appends one element and moves
// on to the following one.
template <class Next>
void append_lists(const Shape& shape, int depth, Next& next, std::string& out) {
  if (depth == shape.rank()) {
    next(out);
    return;
  }
  out += '[';
  for (int64_t i = 0; i < shape.dim(depth); ++i) {
    if (i > 0) out += ", ";
    append_lists(shape, depth + 1, next, out);
  }
  out += ']';
}

// Whether the lists of a tensor without elements would be too many: shape
// [2^60,0] is legal.
bool is_vast_and_empty(const Shape& shape) {
  constexpr int64_t kMaxLists = 10'000;
  int64_t lists = 1;
  for (int64_t dim : shape.dims()) {
    if (dim == 0) return lists > kMaxLists;
    lists = std::min(lists, kMaxLists + 1) * std::min(dim, kMaxLists + 1);
  }
  return false;
}

// A description of a handle, as a JSON string.
template <class Handle>
void append_handle(const Handle& handle, std::string& out) {
  append_string(handle.get() ? handle.get()->describe() : "empty", out);
}

}  // namespace

std::string format_json_literal(const Tensor& tensor) {
  const Shape shape = tensor.shape();
  if (is_vast_and_empty(shape)) return "[]";
  std::string out;
  const bool written = visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    const T* value = tensor.data<T>();
    auto next = [&value](std::string& text) { append_value(*value++, text); };
    append_lists(shape, 0, next, out);
  });
  if (written) return out;
  int64_t i = 0;
  auto next = [&](std::string& text) {
    if (tensor.dtype() == DataType::kResource) {
      append_handle(tensor.data<ResourceHandle>()[i++], text);
    } else if (tensor.dtype() == DataType::kVariant) {
      append_handle(tensor.data<Variant>()[i++], text);
    } else {
      append_string(dtype_name(tensor.dtype()), text);
    }
  };
  append_lists(shape, 0, next, out);
  return out;
}

std::string json_string(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tagflow::io
