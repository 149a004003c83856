// Ops on lists of doubles, and a loop around them.
#pragma once

#include <doctest/doctest.h>

#include <functional>

#include "graph/builder/builder.h"
#include "tests/autodiff/rules/functions.h"

namespace tagflow::autodiff::testing {

using graph::Input;
using graph::Output;
using graph::Outputs;
using graph::Scope;
namespace ops = tagflow::graph::ops;

inline constexpr DataType kDouble = DataType::kDouble;
inline const AttrMap kElements{{"element_dtype", kDouble}};

inline Output reserve(const Scope& s, const Input& count) {
  return s.op("TensorListReserve", {-1, count}, kElements);
}
inline Output empty_list(const Scope& s) {
  return s.op("EmptyTensorList", {-1, -1}, kElements);
}
inline Output set_item(const Scope& s, const Output& list, const Input& index,
                       const Output& item, bool resize = false) {
  return s.op("TensorListSetItem", {list, index, item},
              {{"resize_if_index_out_of_bounds", resize}});
}
inline Output get_item(const Scope& s, const Output& list, const Input& index) {
  return s.op("TensorListGetItem", {list, index, -1}, kElements);
}
inline Output push_back(const Scope& s, const Output& list,
                        const Output& item) {
  return s.op("TensorListPushBack", {list, item});
}
inline graph::OpResult pop_back(const Scope& s, const Output& list) {
  return s.op("TensorListPopBack", {list, -1}, kElements);
}
inline Output stack(const Scope& s, const Output& list) {
  return s.op("TensorListStack", {list, -1}, kElements);
}
inline Output from_tensor(const Scope& s, const Output& tensor) {
  return s.op("TensorListFromTensor", {tensor, -1}, kElements);
}
inline Output resize(const Scope& s, const Output& list, const Input& size) {
  return s.op("TensorListResize", {list, size});
}

inline Output square(const Scope& s, const Output& x) {
  return ops::square(s, x);
}

// What a loop variable of known shape needs.
inline Output as_pair(const Scope& s, const Output& x) {
  return s.op("EnsureShape", {x}, {{"shape", PartialShape{2}}});
}

inline Outputs without_first(const Outputs& outputs) {
  if (outputs.empty()) return {};
  return std::vector<Output>(outputs.begin() + 1, outputs.end());
}

// Body of a loop over i < n.
using Body =
    std::function<Outputs(const Scope&, const Output& i, const Outputs& v)>;
inline Outputs count_loop(const Scope& s, int n, const Outputs& initial,
                          const Body& body) {
  Outputs variables{s.constant(Tensor::scalar(int32_t{0}))};
  for (const Output& v : initial) variables.push_back(v);
  const Outputs results = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        Outputs next{ops::add(in, v[0], 1)};
        const auto rest = without_first(v);
        for (const Output& value : body(in, v[0], rest)) next.push_back(value);
        return next;
      },
      variables);
  return without_first(results);
}

}  // namespace tagflow::autodiff::testing
