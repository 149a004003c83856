#include "autodiff/sum.h"

#include <algorithm>
#include <utility>

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Output;
using graph::Scope;

namespace {

using Combine = Output (*)(const Scope&, const graph::Inputs&);

// An op of up to this many tensors is one node. The engine runs nodes with up
// to 65535 inputs.
constexpr size_t kMost = size_t(1) << 15;

// `combine` is associative.
Output combined(const Scope& s, std::vector<Output> tensors, Combine combine) {
  while (tensors.size() > 1) {
    std::vector<Output> results;
    for (size_t at = 0; at < tensors.size(); at += kMost) {
      const size_t count = std::min(kMost, tensors.size() - at);
      results.push_back(
          count == 1
              ? tensors[at]
              : combine(s, std::vector<Output>(
                               tensors.begin() + ptrdiff_t(at),
                               tensors.begin() + ptrdiff_t(at + count))));
    }
    tensors = std::move(results);
  }
  return tensors[0];
}

}  // namespace

Output sum_of(const Scope& s, std::vector<Output> terms) {
  return combined(s, std::move(terms),
                  [](const Scope& in, const graph::Inputs& some) {
                    return ops::add_n(in, some);
                  });
}

Output joined(const Scope& s, std::vector<Output> tensors) {
  return combined(s, std::move(tensors),
                  [](const Scope& in, const graph::Inputs& some) {
                    return ops::concat(in, some, 0);
                  });
}

}  // namespace tagflow::autodiff
