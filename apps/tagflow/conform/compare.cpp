#include "apps/tagflow/conform/compare.h"

#include <cmath>
#include <string>

#include "graph/dtype_visit.h"
#include "graph/storage_type.h"

namespace tagflow::apps {
namespace {

std::string_view without_zeros_at_end(std::string_view text) {
  const size_t last = text.find_last_not_of('\0');
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

template <class T>
bool is_close(const T& actual, const T& expected, double t) {
  if constexpr (requires { typename T::value_type; } &&
                !std::is_same_v<T, std::string>) {
    return is_close(actual.real(), expected.real(), t) &&
           is_close(actual.imag(), expected.imag(), t);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return without_zeros_at_end(actual) == without_zeros_at_end(expected);
  } else if constexpr (std::is_integral_v<T>) {
    return actual == expected;
  } else {
    const double a = double(actual), e = double(expected);
    if (std::isnan(e)) return std::isnan(a);
    if (std::isinf(a) || std::isinf(e)) return a == e;
    return std::abs(a - e) <= t + t * std::abs(e);
  }
}

template <class T>
std::string to_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return Tensor::scalar(value).to_string();
  } else if constexpr (requires { typename T::value_type; }) {
    return fmt::format("{}{:+}i", value.real(), value.imag());
  } else if constexpr (std::is_integral_v<T>) {
    return fmt::format("{}", value);
  } else {
    return fmt::format("{}", double(value));
  }
}

// "[1,0,2]": the index of element `flat` of a row-major tensor.
std::string index_text(const Shape& shape, int64_t flat) {
  std::string text;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    text =
        std::to_string(flat % shape.dim(d)) + (text.empty() ? "" : ",") + text;
    flat /= shape.dim(d);
  }
  return "[" + text + "]";
}

template <class T>
Status compare_elements(const Tensor& actual, const Tensor& expected) {
  const double t = tolerance(expected.dtype());
  const T* a = actual.data<T>();
  const T* e = expected.data<T>();
  const int64_t count = expected.num_elements();
  int64_t first = -1, differing = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (is_close(a[i], e[i], t)) continue;
    if (first < 0) first = i;
    ++differing;
  }
  if (differing == 0) return {};
  return invalid_argument(
      "{} of {} elements differ; at {} there is {}, expected {}", differing,
      count, index_text(expected.shape(), first), to_text(a[first]),
      to_text(e[first]));
}

}  // namespace

double tolerance(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
    case DataType::kComplex64:
      return 1e-4;
    case DataType::kDouble:
    case DataType::kComplex128:
      return 1e-9;
    case DataType::kHalf:
    case DataType::kBFloat16:
      return 1e-2;
    default:
      return 0;
  }
}

Status compare(const Tensor& actual, const Tensor& expected) {
  if (storage_type(actual.dtype()) != expected.dtype() ||
      actual.shape() != expected.shape()) {
    return invalid_argument("it is {}, expected {}", actual.describe(),
                            expected.describe());
  }
  Status status = invalid_argument("elements of type {} cannot be compared",
                                   dtype_name(expected.dtype()));
  visit_dtype(expected.dtype(), [&]<class T>(TypeTag<T>) {
    status = compare_elements<T>(actual, expected);
  });
  return status;
}

}  // namespace tagflow::apps
