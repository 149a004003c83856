#include "graph/builder/ops_reduction.h"

#include "graph/builder/ops_array.h"

namespace tagflow::graph::ops {

Output all_axes(const Scope& s, const Input& x) {
  const PartialShape shape =
      x.is_literal() ? PartialShape(x.literal().shape()) : x.output().shape();
  const Scope unnamed = s.named("");
  if (!shape.has_rank()) {
    const Scope scope = unnamed.named("axes");
    return range(scope, 0, rank(unnamed, x), 1);
  }
  Tensor axes = Tensor::make(DataType::kInt32, {shape.rank()});
  for (int i = 0; i < shape.rank(); ++i) axes.mutable_data<int32_t>()[i] = i;
  return unnamed.constant(std::move(axes), "axes");
}

}  // namespace tagflow::graph::ops
