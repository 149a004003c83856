#include "graph/builder/output.h"

#include <cmath>
#include <limits>

#include "graph/dtype_visit.h"

namespace tagflow::graph {

DataType Output::dtype() const {
  return has_tensor() ? node_->output_dtypes()[size_t(port_)]
                      : DataType::kInvalid;
}

PartialShape Output::shape() const {
  return has_tensor() ? node_->output_shape(port_) : PartialShape();
}

std::string Output::name() const {
  if (!valid()) return "";
  return is_operation() ? node_->name() : endpoint().to_string();
}

Output OpResult::operator[](int port) const {
  return port >= 0 && port < size() ? Output(node_, port) : Output();
}

DataType Input::dtype() const {
  if (weak_) return DataType::kInvalid;
  return is_literal() ? literal_.dtype() : remove_ref(output_.dtype());
}

namespace {

// Whether the conversion is exact; for floats, rounding is allowed.
template <class T, class From>
bool fits(From value) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_integral_v<From>) {
      return std::in_range<T>(value);
    } else {
      // 2^digits is the first value out of range, and exact in a double.
      const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
      const double lowest = std::is_signed_v<T> ? -limit : 0.0;
      return value >= lowest && value < limit && std::trunc(value) == value;
    }
  } else {
    return true;
  }
}

template <class T, class From>
T converted(From value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(float(value));
  } else if constexpr (std::is_same_v<T, Complex64>) {
    return T(float(value), 0);
  } else {
    return T(value);
  }
}

template <class From>
DataType natural_dtype(std::span<const From> values) {
  if (std::is_same_v<From, double>) return DataType::kFloat;
  for (const From value : values) {
    if (!fits<int32_t>(value)) return DataType::kInt64;
  }
  return DataType::kInt32;
}

template <class From>
Result<Tensor> convert(const Tensor& literal, DataType dtype) {
  const std::span<const From> values = literal.flat<From>();
  if (dtype == DataType::kInvalid) dtype = natural_dtype(values);
  Tensor result;
  Status status;
  const bool numeric = visit_numeric(dtype, [&]<class T>(TypeTag<T>) {
    result = Tensor::make(dtype, literal.shape());
    for (size_t i = 0; i < values.size(); ++i) {
      if (!fits<T>(values[i])) {
        status = invalid_argument("the literal {} is not a value of type {}",
                                  values[i], dtype_name(dtype));
        return;
      }
      result.mutable_data<T>()[i] = converted<T>(values[i]);
    }
  });
  if (!numeric)
    return invalid_argument("a number is given, but {} is wanted",
                            dtype_name(dtype));
  if (!status.ok()) return status;
  return result;
}

}  // namespace

Result<Tensor> weak_to_dtype(const Tensor& literal, DataType dtype) {
  return literal.dtype() == DataType::kDouble
             ? convert<double>(literal, dtype)
             : convert<int64_t>(literal, dtype);
}

}  // namespace tagflow::graph
