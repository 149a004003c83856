// TensorArrays: their gradients go along the flow, a scalar whose gradient is
// that of the array.
#include "autodiff/rules/containers.h"

namespace tagflow::autodiff {
namespace {

void array_write_rule(RuleContext& r) {
  r.set(3, taken_gradient(r, r.input(1), 2, 3));
}

void array_read_rule(RuleContext& r) {
  r.set(2, one_gradient(r, r.input(1), r.grad()));
}

void array_gather_rule(RuleContext& r) {
  r.set(2, row_gradients(r, r.input(1), r.grad()));
}

void array_scatter_rule(RuleContext& r) {
  r.set(3, taken_gradient_rows(r, r.input(1), 2, 3));
}

void array_concat_rule(RuleContext& r) {
  r.set(1, part_gradients(r, r.grad(), r.output(1)));
}

// No element is written twice: so what is left in the gradient is looked for by
// no earlier write.
void array_split_rule(RuleContext& r) {
  if (r.wants(1)) r.set(1, gradient_parts(r, r.grad(), r.input(2), 1));
  r.set(3, r.grad());
}

// Its flow is that of the array, or that of another gradient array of the same
// name, which is the same: the graph does not say which.
void gradient_array_rule(RuleContext& r) {
  r.fail(
      "gradients of gradients that TensorFlow has made with TensorArrays are "
      "not implemented; differentiate the graph without them twice");
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
