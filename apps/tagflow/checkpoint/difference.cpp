#include "apps/tagflow/checkpoint/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "graph/dtype_visit.h"

namespace tagflow::apps {
namespace {

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::abs(a - b);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                : difference;
}

// The difference of two numbers of one type. Not all 64-bit integers are
// doubles.
template <class T>
double distance_of(const T& a, const T& b) {
  if constexpr (requires { a.real(); }) {
    return std::hypot(distance(double(a.real()), double(b.real())),
                      distance(double(a.imag()), double(b.imag())));
  } else if constexpr (std::is_integral_v<T>) {
    const auto low = uint64_t(std::min(a, b)), high = uint64_t(std::max(a, b));
    return double(high - low);
  } else {
    return distance(double(a), double(b));
  }
}

}  // namespace

ElementDifference compare_elements(const Tensor& a, const Tensor& b,
                                   double tolerance) {
  ElementDifference result;
  const auto visit = [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      const double by = distance_of(a.data<T>()[i], b.data<T>()[i]);
      result.count += by > tolerance ? 1 : 0;
      result.most = std::max(result.most, by);
    }
  };
  if (visit_numeric(a.dtype(), visit)) return result;
  const bool is_text = a.dtype() == DataType::kString;
  const size_t size = is_text ? 0 : dtype_size(a.dtype());
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const bool same = is_text
                          ? a.data<std::string>()[i] == b.data<std::string>()[i]
                          : std::equal(a.data<char>() + size_t(i) * size,
                                       a.data<char>() + size_t(i + 1) * size,
                                       b.data<char>() + size_t(i) * size);
    result.count += same ? 0 : 1;
  }
  return result;
}

std::string TensorDifference::to_string() const {
  if (b.empty()) return fmt::format("{}: {} in the first only", name, a);
  if (a.empty()) return fmt::format("{}: {} in the second only", name, b);
  if (a != b)
    return fmt::format("{}: {} in the first, {} in the second", name, a, b);
  return fmt::format(
      "{}: {}, {} elements differ{}", name, a, elements.count,
      elements.most > 0 ? fmt::format(", by {} at most", elements.most) : "");
}

Result<std::vector<TensorDifference>> compare_files(
    const checkpoint::TensorFile& a, const checkpoint::TensorFile& b,
    double tolerance, std::string_view ignored) {
  std::set<std::string> names;
  for (const checkpoint::TensorInfo& info : a.tensors())
    names.insert(info.name);
  for (const checkpoint::TensorInfo& info : b.tensors())
    names.insert(info.name);
  if (!ignored.empty())
    std::erase_if(names, [&](const std::string& name) {
      return name.starts_with(ignored);
    });
  std::vector<TensorDifference> differences;
  for (const std::string& name : names) {
    const checkpoint::TensorInfo* in_a = a.find(name);
    const checkpoint::TensorInfo* in_b = b.find(name);
    TensorDifference difference;
    difference.name = name;
    if (in_a != nullptr) difference.a = in_a->type_text();
    if (in_b != nullptr) difference.b = in_b->type_text();
    if (difference.a == difference.b) {
      TAGFLOW_ASSIGN(const Tensor value_a, a.read(name));
      TAGFLOW_ASSIGN(const Tensor value_b, b.read(name));
      difference.elements = compare_elements(value_a, value_b, tolerance);
      if (difference.elements.count == 0) continue;
    }
    differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace tagflow::apps
