// Rules of forward mode that ops of several families have: of ops that hand a
// tensor on, are linear, or have a diagonal Jacobian. An op without a forward
// rule has its rule transposed (Note [Transposed rules] in
// autodiff/transpose.h).
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

#include "autodiff/forward_rule.h"
#include "autodiff/rule.h"

namespace tagflow::autodiff {

// Whether only these inputs have tangents.
inline bool has_only(const ForwardContext& r, std::span<const int> inputs) {
  for (int i = 0; i < r.num_inputs(); ++i)
    if (r.has_tangent(i) && std::ranges::find(inputs, i) == inputs.end())
      return false;
  return true;
}

// For an op that is linear in inputs I together.
template <int... I>
void linear(ForwardContext& r) {
  constexpr std::array inputs{I...};
  if (has_only(r, inputs))
    r.set_linear(inputs);
  else
    r.set_transposed();
}

// For an op that is linear in each of inputs I.
template <int... I>
void multilinear(ForwardContext& r) {
  constexpr std::array inputs{I...};
  if (has_only(r, inputs))
    r.set_multilinear(inputs);
  else
    r.set_transposed();
}

// For an op of one tensor whose Jacobian is symmetric, as the diagonal one of
// an element-wise function.
inline void symmetric(ForwardContext& r) { r.set_symmetric(); }

// For an op whose output 0 is its input 0.
inline void hand_on_first(ForwardContext& r) {
  if (r.has_tangent(0)) r.set(0, r.tangent(0));
}

// Inputs from `first` on, except the last `but_last`.
inline std::vector<int> inputs_from(const ForwardContext& r, int first,
                                    int but_last = 0) {
  std::vector<int> inputs(size_t(r.num_inputs() - first - but_last));
  std::iota(inputs.begin(), inputs.end(), first);
  return inputs;
}

}  // namespace tagflow::autodiff
