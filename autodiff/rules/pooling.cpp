// Pools, their gradients, and the gradients of those.
#include <limits>

#include "autodiff/rule.h"
#include "autodiff/rules/attributes.h"
#include "autodiff/rules/forward.h"
#include "graph/builder/ops_array.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

constexpr std::string_view kPoolAttrs[] = {"ksize", "strides", "padding",
                                           "data_format"};

// --- Largest elements -------------------------------------------------------

// Note [Max pools]
// MaxPoolGrad(x, y, dy) adds the gradient of each window to the largest element
// under it; MaxPoolGradGrad(x, y, dx) gathers from there the value for each
// window. Both are linear in their last tensor, and each is the other's
// gradient by it. Their derivatives by x and y are zero if they exist.
//
// The ops of V2 have sizes and strides as inputs behind these tensors.

graph::Inputs with_sizes(RuleContext& r, graph::Inputs inputs, int from) {
  for (int i = from; i < r.num_inputs(); ++i) inputs.add(r.input(i));
  return inputs;
}

void set_max_pool_grad(RuleContext& r, const char* op, AttrMap attrs) {
  r.set(0,
        r.scope().op(op, with_sizes(r, {r.input(0), r.output(), r.grad()}, 1),
                     std::move(attrs)));
}

// Sets the gradient of input 2. MaxPoolGrad and MaxPoolGradGrad are each
// other's gradient; `op` is the name of the other one.
void set_max_pool_dual(RuleContext& r, const char* op) {
  r.set(2,
        r.scope().op(op, with_sizes(r, {r.input(0), r.input(1), r.grad()}, 3),
                     copied_attrs(r.node(), kPoolAttrs)));
}

void max_pool_rule(RuleContext& r) {
  AttrMap attrs = copied_attrs(r.node(), kPoolAttrs);
  attrs.emplace("explicit_paddings",
                r.attr<std::vector<int64_t>>("explicit_paddings"));
  set_max_pool_grad(r, "MaxPoolGrad", std::move(attrs));
}

// MaxPoolGradGrad does not support explicit paddings, so x and its gradient are
// padded before. No window consists only of padding, so the largest element
// under it stays the same.
void max_pool_grad_rule(RuleContext& r) {
  if (r.attr<std::string>("padding") != "EXPLICIT")
    return set_max_pool_dual(r, "MaxPoolGradGrad");
  const Scope& s = r.scope();
  const Output pairs =
      ops::reshape(s, r.ints(r.attr<std::vector<int64_t>>("explicit_paddings")),
                   r.ints({-1, 2}));
  const double smallest = -std::numeric_limits<double>::infinity();
  const Output x =
      s.op("PadV2", {r.input(0), pairs, r.scalar(smallest, r.grad())});
  AttrMap attrs = copied_attrs(r.node(), kPoolAttrs);
  attrs.insert_or_assign("padding", "VALID");
  r.set(2,
        s.op("MaxPoolGradGrad", {x, r.input(1), ops::pad(s, r.grad(), pairs)},
             std::move(attrs)));
}

void add_max_pool_rules(RuleTable& table) {
  table.add("MaxPool", max_pool_rule);
  table.add("MaxPoolV2", [](RuleContext& r) {
    set_max_pool_grad(r, "MaxPoolGradV2", copied_attrs(r.node(), kPoolAttrs));
  });
  table.add("MaxPool3D", [](RuleContext& r) {
    set_max_pool_grad(r, "MaxPool3DGrad", copied_attrs(r.node(), kPoolAttrs));
  });
  table.add("MaxPoolGrad", max_pool_grad_rule);
  table.add("MaxPoolGradV2",
            [](RuleContext& r) { set_max_pool_dual(r, "MaxPoolGradGradV2"); });
  table.add("MaxPool3DGrad",
            [](RuleContext& r) { set_max_pool_dual(r, "MaxPool3DGradGrad"); });
  table.add("MaxPoolGradGrad",
            [](RuleContext& r) { set_max_pool_dual(r, "MaxPoolGrad"); });
  table.add("MaxPoolGradGradV2",
            [](RuleContext& r) { set_max_pool_dual(r, "MaxPoolGradV2"); });
  table.add("MaxPool3DGradGrad",
            [](RuleContext& r) { set_max_pool_dual(r, "MaxPool3DGrad"); });
}

// Makes the gradient by the indices of the largest elements instead of y: the
// inputs of the gradients are x, dy or dx, and these.
Output with_argmax(RuleContext& r, const char* op, const Output& argmax) {
  constexpr std::string_view kAttrs[] = {"ksize", "strides", "padding",
                                         "include_batch_in_index"};
  return r.scope().op(op, {r.input(0), r.grad(), argmax},
                      copied_attrs(r.node(), kAttrs));
}

void add_argmax_pool_rules(RuleTable& table) {
  table.add("MaxPoolWithArgmax", [](RuleContext& r) {
    r.set(0, with_argmax(r, "MaxPoolGradWithArgmax", r.output(1)));
  });
  table.add("MaxPoolGradWithArgmax", [](RuleContext& r) {
    r.set(1, with_argmax(r, "MaxPoolGradGradWithArgmax", r.input(2)));
  });
  table.add("MaxPoolGradGradWithArgmax", [](RuleContext& r) {
    r.set(1, with_argmax(r, "MaxPoolGradWithArgmax", r.input(2)));
  });
}

// --- Averages ---------------------------------------------------------------

// They are linear: the gradient needs only the input's shape, and its gradient
// is an average again.
void set_average_grad(RuleContext& r, const char* op) {
  r.set(0, r.scope().op(op, {r.input_shape(0), r.grad()},
                        copied_attrs(r.node(), kPoolAttrs)));
}

void set_average(RuleContext& r, const char* op) {
  r.set(1, r.scope().op(op, {r.grad()}, copied_attrs(r.node(), kPoolAttrs)));
}

void add_average_pool_rules(RuleTable& table) {
  table.add("AvgPool",
            [](RuleContext& r) { set_average_grad(r, "AvgPoolGrad"); });
  table.add("AvgPool3D",
            [](RuleContext& r) { set_average_grad(r, "AvgPool3DGrad"); });
  table.add("AvgPoolGrad", [](RuleContext& r) { set_average(r, "AvgPool"); });
  table.add("AvgPool3DGrad",
            [](RuleContext& r) { set_average(r, "AvgPool3D"); });
}

}  // namespace

void add_pooling_rules(RuleTable& table) {
  add_max_pool_rules(table);
  add_argmax_pool_rules(table);
  add_average_pool_rules(table);
  table.add_forward({"AvgPool", "AvgPool3D"}, linear<0>);
}

}  // namespace tagflow::autodiff
