#include "devices/kernels/summarize.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "devices/kernel.h"
#include "graph/dtype_visit.h"
#include "graph/handle.h"

namespace tagflow::devices {

namespace {

// The shorter of two numbers of digits that is read back as the same number.
template <class T>
std::string number_text(T value) {
  if (std::isnan(value)) return "nan";
  constexpr int kDigits = std::numeric_limits<T>::digits10;
  std::string text = fmt::format("{:.{}g}", value, kDigits);
  const double again = std::strtod(text.c_str(), nullptr);
  return T(again) == value
             ? text
             : fmt::format("{:.{}g}", value,
                           kDigits + 3 - std::is_same_v<T, double>);
}

// Escaped as in C; bytes outside ASCII stay.
std::string escaped(std::string_view text) {
  constexpr std::string_view kPlain = "\n\r\t\"'\\", kNames = "nrt\"'\\";
  std::string result;
  for (const char c : text) {
    const size_t at = kPlain.find(c);
    const auto byte = static_cast<unsigned char>(c);
    if (at != kPlain.npos)
      (result += '\\') += kNames[at];
    else if (byte < 0x20 || byte == 0x7f)
      result += fmt::format("\\{:03o}", byte);
    else
      result += c;
  }
  return result;
}

template <class T>
std::string value_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return escaped(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_same_v<T, Complex64> ||
                       std::is_same_v<T, Complex128>) {
    return fmt::format("({},{})", number_text(value.real()),
                       number_text(value.imag()));
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return number_text(float(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return number_text(value);
  } else {
    return fmt::format("{}", value);
  }
}

// The rows of dimension `dim` that start before element `limit`; `next` is the
// first element not yet shown.
void append_rows(const Tensor& tensor, int dim, int64_t limit,
                 const KernelContext* context, int64_t& next,
                 std::string& text) {
  const bool innermost = dim == tensor.rank() - 1;
  for (int64_t i = 0; i < tensor.dim(dim); ++i) {
    if (next >= limit) {
      if (innermost && dim > 0) text += "...";
      return;
    }
    if (!innermost) {
      text += '[';
      append_rows(tensor, dim + 1, limit, context, next, text);
      text += ']';
    } else {
      if (context != nullptr) context->check_cancelled();
      if (i > 0) text += ' ';
      text += element_text(tensor, next++);
    }
  }
}

}  // namespace

std::string element_text(const Tensor& tensor, int64_t i) {
  std::string text = "?";
  visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    text = value_text(tensor.data<T>()[i]);
  });
  if (tensor.dtype() == DataType::kResource) {
    const Resource* resource = tensor.data<ResourceHandle>()[i].get();
    text = resource ? resource->describe() : "<empty>";
  } else if (tensor.dtype() == DataType::kVariant) {
    const VariantValue* value = tensor.data<Variant>()[i].get();
    text = value ? value->describe() : "<empty>";
  }
  return text;
}

std::string summarize(const Tensor& tensor, int64_t limit,
                      const KernelContext* context) {
  if (!tensor.valid()) return "[<no tensor>]";
  const int64_t count = tensor.num_elements();
  if (limit < 0 || limit > count) limit = count;
  std::string text = "[";
  int64_t next = 0;
  if (tensor.rank() > 0) {
    append_rows(tensor, 0, limit, context, next, text);
  } else if (limit > 0) {
    text += element_text(tensor, 0);
  }
  if (limit < count) text += "...";
  return text + "]";
}

}  // namespace tagflow::devices
