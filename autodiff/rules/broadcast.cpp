#include "autodiff/rules/broadcast.h"

#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

bool keeps_shape(const PartialShape& own, const PartialShape& other) {
  if (!own.has_rank() || !other.has_rank() || own.rank() < other.rank())
    return false;
  const int more = own.rank() - other.rank();
  for (int i = more; i < own.rank(); ++i) {
    const bool is_one = own.dim(i) == 1 && other.dim(i - more) == 1;
    if (!own.dim_known(i) || (own.dim(i) == 1 && !is_one)) return false;
  }
  return true;
}

namespace {

PartialShape without_matrix(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() < 2) return PartialShape();
  return PartialShape(shape.dims().first(size_t(shape.rank() - 2)));
}

}  // namespace

void set_batch_broadcast(RuleContext& r, int input, const Output& gradient) {
  if (!r.wants(input)) return;
  if (keeps_shape(without_matrix(r.known_input_shape(input)),
                  without_matrix(r.known_input_shape(1 - input))))
    return r.set(input, gradient);
  const Scope& s = r.scope();
  const auto batch = [&](int i) {
    return ops::strided_slice(s, r.input_shape(i), r.ints({0}), r.ints({-2}),
                              r.ints({1}));
  };
  const Output axes =
      ops::broadcast_gradient_args(s, batch(input), batch(1 - input)).r0;
  r.set(input, ops::reshape(s, ops::reduce_sum(s, gradient, axes),
                            r.input_shape(input)));
}

Output sum_to_shape(const Scope& s, const Output& gradient, const Output& from,
                    const Output& to) {
  const Output axes = ops::broadcast_gradient_args(s, from, to).r0;
  return ops::reshape(s, ops::reduce_sum(s, gradient, axes), from);
}

}  // namespace tagflow::autodiff
