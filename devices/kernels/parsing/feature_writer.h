// What parsers of features and of lists of features have in common.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "devices/kernels/parsing/feature_set.h"
#include "devices/kernels/parsing/feature_view.h"

namespace tagflow::devices {

// InvalidArgument about a feature of the Example in that row.
template <class... Args>
Status feature_error(const SerializedBatch& batch, int64_t row,
                     std::string_view key, fmt::format_string<Args...> format,
                     Args&&... args) {
  return batch.context().fail("{}: feature {:?} {}", batch.describe(row), key,
                              fmt::format(format, std::forward<Args>(args)...));
}

// InvalidArgument unless the values of a feature have the type.
inline Status check_feature_type(const SerializedBatch& batch, int64_t row,
                                 std::string_view key, DataType wanted,
                                 const FeatureView& view) {
  if (view.is_missing() || view.type() == wanted) [[likely]]
    return {};
  return feature_error(batch, row, key, "has values of {}, not of {}",
                       dtype_name(view.type()), dtype_name(wanted));
}

// Calls f(T()) with the element type T of a feature.
template <class F>
auto with_feature_type(DataType type, const F& f) {
  switch (type) {
    case DataType::kString:
      return f(std::string());
    case DataType::kFloat:
      return f(float());
    default:
      return f(int64_t());
  }
}

// Turns counts, of which the first is 0 and the next are those of rows, into
// the sums before each row, and of all. InvalidArgument if they overflow.
inline Status add_up(const KernelContext& context,
                     std::vector<int64_t>& counts) {
  for (size_t i = 1; i < counts.size(); ++i)
    if (__builtin_add_overflow(counts[i], counts[i - 1], &counts[i]))
      return context.fail("there are too many values");
  return {};
}

inline int64_t largest(const std::vector<int64_t>& counts) {
  return counts.empty() ? 0 : *std::ranges::max_element(counts);
}

}  // namespace tagflow::devices
