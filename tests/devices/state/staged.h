// The staging area "area", and values to put into it.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "tests/devices/state/calls.h"
#include "tests/devices/state/tested_barrier.h"

namespace tagflow::devices::staged {

inline Tensor one(int value) { return Tensor::scalar(value); }
inline Tensor key(int64_t value) { return Tensor::scalar(value); }
inline Tensor parts(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

inline const Types kInt = {DataType::kInt32};
inline const Types kTwo = {DataType::kInt32, DataType::kInt32};

inline AttrMap area(Types types, AttrMap more = {}) {
  more.emplace("dtypes", std::move(types));
  more.emplace("shared_name", "area");
  return more;
}

inline int count(ResourceManager& state, std::string_view op,
                 const Types& types) {
  return (*call_op(state, op, {}, area(types)))[0].scalar_value<int32_t>();
}

}  // namespace tagflow::devices::staged
