// FeatureView: the values of a feature of an Example, where they lie in the
// serialized message.
#pragma once

#include <cstdint>
#include <string_view>

#include "devices/string_writer.h"
#include "graph/dtype.h"

namespace tagflow::devices {

// Refers to the message. A value type.
class FeatureView {
 public:
  // Of a feature that is missing.
  FeatureView() = default;
  // Reads a Feature; if it has several lists, the last kind counts. False if it
  // is damaged.
  static bool read(std::string_view message, FeatureView& view);

  // The type of the values; kInvalid if there is no list at all, which means
  // that the feature is missing.
  DataType type() const {
    constexpr DataType kTypes[] = {DataType::kInvalid, DataType::kString,
                                   DataType::kFloat, DataType::kInt64};
    return kTypes[kind_];
  }
  bool is_missing() const { return kind_ == 0; }
  // The number of values; -1 if they are damaged.
  int64_t count() const;
  // Writes the values, or the first `room` of them if there are more. Returns
  // the number of all; -1 if they are damaged. `writer` is that of the tensor
  // that has `to`. REQUIRES: type() is that of T.
  template <class T>
  int64_t copy(T* to, int64_t room, const ElementWriter<T>& writer) const;

 private:
  // Calls visit(list) with each of its lists, until that is false. False, too,
  // if the message is damaged.
  template <class Visit>
  bool for_each_list(const Visit& visit) const;

  // The Feature from the first list of the last kind on.
  std::string_view message_;
  uint32_t kind_ = 0;  // the number of the field
};

extern template int64_t FeatureView::copy(
    std::string*, int64_t, const ElementWriter<std::string>&) const;
extern template int64_t FeatureView::copy(float*, int64_t,
                                          const ElementWriter<float>&) const;
extern template int64_t FeatureView::copy(int64_t*, int64_t,
                                          const ElementWriter<int64_t>&) const;

}  // namespace tagflow::devices
