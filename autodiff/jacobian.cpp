#include "autodiff/jacobian.h"

#include "autodiff/arguments.h"
#include "autodiff/gradients.h"
#include "autodiff/jvp.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/scope_access.h"
#include "graph/builder/structured_control_flow.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Leaf;
using graph::Outputs;
using graph::Scope;

namespace {

Output shape_of(const Scope& s, const Output& x) {
  if (remove_ref(x.dtype()) != DataType::kResource) return ops::shape(s, x);
  return s.op("VariableShape", {x}, {{"out_type", DataType::kInt32}});
}

// Row i is the gradient of element i of y, in a list with an element for each
// of y's. If y is dead, so are all inputs of the loop, since they are
// computed from y's shape.
Output stacked_rows(const Scope& s, const Output& y, const Output& x,
                    const JacobianOptions& options) {
  const Output y_shape = ops::shape(s, y), x_shape = shape_of(s, x);
  const Output count = ops::size(s, y);
  const Output one = ops::cast(s, 1.0, remove_ref(y.dtype()));
  const Output zero = ops::zeros_like(s, one);
  DataType dtype = DataType::kInvalid;
  const std::string path = "rows";
  const Outputs last = graph::structure::while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], count);
      },
      [&](const Scope& in, const Outputs& v,
          const graph::structure::AddVariable& grow) -> std::vector<Leaf> {
        const Output is_it = ops::one_hot(in, v[0], count, one, zero);
        GradientOptions of_element;
        of_element.grad_ys = ops::reshape(in, is_it, y_shape);
        of_element.zeros_if_unconnected = true;
        const Output row = dense_gradients(in, {y}, {x}, of_element)[0];
        dtype = row.dtype();
        const AttrMap type{{"element_dtype", dtype}};
        const Output none =
            s.op("TensorListReserve", {x_shape, count},
                 {{"element_dtype", dtype}, {"shape_type", DataType::kInt32}});
        const Output rows = grow({path, none});
        return {{"element", ops::add(in, v[0], 1)},
                {path, in.op("TensorListSetItem", {rows, v[0], row}, type)}};
      },
      {{"element", ops::zeros_like(s, count)}},
      {.parallel_iterations = options.parallel_iterations});
  const Output all =
      s.op("TensorListStack", {last[1], x_shape}, {{"element_dtype", dtype}});
  return ops::reshape(s, all, ops::concat(s, {y_shape, x_shape}, 0));
}

}  // namespace

Output jacobian(const Scope& scope, const Output& y, const Output& x,
                const JacobianOptions& options) {
  if (!scope.ok()) return {};
  const Scope s = graph::ScopeAccess::construct_scope(scope, "jacobian");
  // Before the loop is opened, since less is known inside an open loop.
  if (const auto made = prepare(s, {{y}, {x}, {}}); !made.ok()) {
    scope.fail(made.status());
    return {};
  }
  return stacked_rows(s, y, x, options);
}

Outputs hessian(const Scope& scope, const Output& y, const Outputs& xs,
                const JacobianOptions& options) {
  const Scope s = graph::ScopeAccess::construct_scope(scope, "hessian");
  const Outputs first =
      dense_gradients(s, {y}, xs, {.zeros_if_unconnected = true});
  Outputs results;
  for (size_t i = 0; i < xs.size(); ++i)
    results.push_back(jacobian(s, first[i], xs[i], options));
  return results;
}

Outputs hessian_vector_product(const Scope& scope, const Output& y,
                               const Outputs& xs, const Outputs& vs) {
  const Scope s = graph::ScopeAccess::construct_scope(scope, "hessian_product");
  const Outputs first =
      dense_gradients(s, {y}, xs, {.zeros_if_unconnected = true});
  return jvp(s, first, xs, vs, {.zeros_if_unconnected = true});
}

}  // namespace tagflow::autodiff
