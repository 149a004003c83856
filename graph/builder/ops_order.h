// Op functions: the largest elements.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

struct TopKOutputs {
  Output values, indices;
};
inline TopKOutputs top_k(const Scope& s, const Input& x, const Input& k,
                         bool sorted = true) {
  const OpResult result = s.op("TopKV2", {x, k}, {{"sorted", sorted}});
  return {result[0], result[1]};
}

}  // namespace tagflow::graph::ops
