#include "devices/cpu/summarize.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dtype_visit.h"
#include "graph/handle.h"

namespace tagflow::devices {

namespace {

template <class T>
std::string element_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_same_v<T, Complex64> ||
                       std::is_same_v<T, Complex128>) {
    return fmt::format("({},{})", value.real(), value.imag());
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return fmt::format("{}", float(value));
  } else {
    return fmt::format("{}", value);
  }
}

std::string element_text(const Tensor& tensor, int64_t i) {
  std::string text = "?";
  visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    text = element_text(tensor.data<T>()[i]);
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

}  // namespace

std::string summarize(const Tensor& tensor, int64_t limit) {
  if (!tensor.valid()) return "[<no tensor>]";
  const int64_t count = tensor.num_elements();
  const int64_t shown = limit < 0 ? count : std::min(limit, count);
  const Shape shape = tensor.shape();
  const std::string open(size_t(std::max(shape.rank(), 1)), '[');
  const std::string close(open.size(), ']');
  std::string text = open;
  for (int64_t i = 0; i < shown; ++i) {
    // How many innermost dimensions start anew at element i.
    size_t starting = 0;
    int64_t block = 1;
    for (int d = shape.rank() - 1; i > 0 && d > 0; --d, ++starting) {
      block *= shape.dim(d);
      if (i % block != 0) break;
    }
    if (starting > 0) {
      text += close.substr(0, starting) + open.substr(0, starting);
    } else if (i > 0) {
      text += ' ';
    }
    text += element_text(tensor, i);
  }
  if (shown < count) text += "...";
  return text + close;
}

}  // namespace tagflow::devices
