// Softmax and the losses based on it.
#include "autodiff/rule.h"
#include "autodiff/rules/activation_rules.h"
#include "autodiff/rules/broadcast.h"
#include "autodiff/rules/forward.h"
#include "graph/builder/ops_activation.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

Output sum_of_classes(const Scope& s, const Output& x) {
  return ops::reduce_sum(s, x, -1, {.keep_dims = true});
}

// Of y = softmax(x), from the gradient g of y: y (g - sum(g y)).
Output gradient_of_softmax(const Scope& s, const Output& y, const Output& g) {
  return ops::mul(s, y, ops::sub(s, g, sum_of_classes(s, ops::mul(s, g, y))));
}

// --- Cross entropies --------------------------------------------------------

// Both cross entropies have two outputs: the loss of each row, and `backprop`,
// its gradient by the logits, softmax(logits) - labels. The rules assume this
// for all labels, though it holds only if they add up to 1.
// Like any output, backprop has a gradient, too: it gives the second
// derivatives of the loss.

// The gradient of the losses, so that it broadcasts to their rows.
Output by_rows(RuleContext& r) {
  return ops::expand_dims(r.scope(), r.grad(0), 1);
}

// The gradient by the logits; only the gradient of backprop needs `logits`.
template <class Logits>
Output gradient_of_logits(RuleContext& r, Logits logits) {
  const Scope& s = r.scope();
  Output of_loss, of_backprop;
  if (r.has_grad(0)) of_loss = ops::mul(s, by_rows(r), r.output(1));
  if (r.has_grad(1))
    of_backprop = gradient_of_softmax(s, ops::softmax(s, logits()), r.grad(1));
  if (!r.has_grad(0)) return of_backprop;
  if (!r.has_grad(1)) return of_loss;
  return ops::add(s, of_loss, of_backprop);
}

// Sets the gradient of an input that was broadcast to the shape of backprop.
void set_broadcast_rows(RuleContext& r, int input, const Output& gradient) {
  if (keeps_shape(r.known_input_shape(input), r.known_output_shape(1)))
    return r.set(input, gradient);
  const Scope& s = r.scope();
  const Output shape = r.input_shape(input);
  const Output axes =
      ops::broadcast_gradient_args(s, shape, r.output_shape(1)).r0;
  r.set(input, ops::reshape(s, ops::reduce_sum(s, gradient, axes), shape));
}

// The logits with all classes; they have one class if they are broadcast to
// those of the labels.
Output logits_of_classes(RuleContext& r) {
  const PartialShape& own = r.known_input_shape(0);
  const PartialShape& all = r.known_output_shape(1);
  const bool has_all = own.has_rank() && own.rank() > 0 && all.has_rank() &&
                       own.dim_known(own.rank() - 1) &&
                       own.dim(own.rank() - 1) == all.dim(all.rank() - 1);
  return has_all ? r.input(0)
                 : ops::broadcast_to(r.scope(), r.input(0), r.output_shape(1));
}

void cross_entropy_rule(RuleContext& r) {
  const Scope& s = r.scope();
  if (r.wants(0))
    set_broadcast_rows(
        r, 0, gradient_of_logits(r, [&] { return logits_of_classes(r); }));
  if (!r.wants(1)) return;
  // The loss is -sum(labels log_softmax(logits)).
  Output sum;
  if (r.has_grad(0))
    sum = ops::mul(s, by_rows(r), ops::log_softmax(s, logits_of_classes(r)));
  if (r.has_grad(1))
    sum = r.has_grad(0) ? ops::add(s, sum, r.grad(1)) : r.grad(1);
  set_broadcast_rows(r, 1, ops::neg(s, sum));
}

void sparse_cross_entropy_rule(RuleContext& r) {
  r.set(0, gradient_of_logits(r, [&] { return r.input(0); }));
}

}  // namespace

void add_activation_loss_rules(RuleTable& table) {
  table.add("Softmax", [](RuleContext& r) {
    r.set(0, gradient_of_softmax(r.scope(), r.output(), r.grad()));
  });
  table.add("LogSoftmax", [](RuleContext& r) {
    const Scope& s = r.scope();
    const Output softmax = ops::exp(s, r.output());
    r.set(0, ops::sub(s, r.grad(),
                      ops::mul(s, softmax, sum_of_classes(s, r.grad()))));
  });
  table.add("SoftmaxCrossEntropyWithLogits", cross_entropy_rule);
  table.add("SparseSoftmaxCrossEntropyWithLogits", sparse_cross_entropy_rule);
  table.add_forward({"Softmax"}, symmetric);
}

}  // namespace tagflow::autodiff
