// TensorArrays: their gradients go along the flow, a scalar whose gradient is
// that of the array.
#include "autodiff/region.h"
#include "autodiff/rules/containers.h"

namespace tagflow::autodiff {
namespace {

// A gradient array adds written values to its elements, so the gradient of an
// element stays after a write takes its value's gradient from it. Its flow
// begins with that of the array whose gradient it is, on whose elements it does
// not depend. All writes and reads under one source name are of one array,
// regardless of the flows: hidden writes were rejected (Paths).
bool adds(RuleContext& r) {
  return r.region().analysis().is_gradient_array(r.node().inputs()[0]);
}

void set_flow(RuleContext& r, int input, const Output& gradient) {
  if (!r.region().analysis().only_orders(r.node(), size_t(input)))
    r.set(input, gradient);
}

void array_write_rule(RuleContext& r) {
  if (!adds(r)) return r.set(3, taken_gradient(r, r.input(1), 2, 3));
  if (r.wants(2)) r.set(2, gradient_at(r, r.grad(), r.input(1), 2));
  set_flow(r, 3, r.grad());
}

void array_read_rule(RuleContext& r) {
  set_flow(r, 2, one_gradient(r, r.input(1), r.grad()));
}

void array_gather_rule(RuleContext& r) {
  set_flow(r, 2, row_gradients(r, r.input(1), r.grad()));
}

void array_scatter_rule(RuleContext& r) {
  if (!adds(r)) return r.set(3, taken_gradient_rows(r, r.input(1), 2, 3));
  if (r.wants(2)) r.set(2, gradient_rows_at(r, r.grad(), r.input(1), 2));
  set_flow(r, 3, r.grad());
}

void array_concat_rule(RuleContext& r) {
  set_flow(r, 1, part_gradients(r, r.grad(), r.output(1)));
}

// No element is written twice, so no earlier write reads the rest of the
// gradient. In a gradient array, earlier writes have added to it.
void array_split_rule(RuleContext& r) {
  if (r.wants(1)) r.set(1, gradient_parts(r, r.grad(), r.input(2), 1));
  set_flow(r, 3, r.grad());
}

void gradient_array_rule(RuleContext& r) {
  if (r.has_grad(1)) set_flow(r, 1, r.grad(1));
}

}  // namespace

void add_array_container_rules(RuleTable& table) {
  table.add_none({"TensorArrayV3"}, "it has no elements yet");
  table.add_none({"TensorArraySizeV3"}, "its result is a number of elements");
  table.add_none({"TensorArrayCloseV3"}, "it has no result");
  table.add("TensorArrayWriteV3", array_write_rule);
  table.add("TensorArrayReadV3", array_read_rule);
  table.add("TensorArrayGatherV3", array_gather_rule);
  table.add("TensorArrayScatterV3", array_scatter_rule);
  table.add("TensorArrayConcatV3", array_concat_rule);
  table.add("TensorArraySplitV3", array_split_rule);
  table.add({"TensorArrayGradV3", "TensorArrayGradWithShape"},
            gradient_array_rule);
}

}  // namespace tagflow::autodiff
