// Fused recurrent cells, by their gradient ops. Gradients that these do not
// compute, such as second derivatives, are made of primitives.
#include <algorithm>
#include <initializer_list>

#include "autodiff/rule.h"
#include "autodiff/rules/attributes.h"
#include "autodiff/rules/expression.h"
#include "autodiff/rules/recurrent_expressions.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_product.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// The gradient ops take the gradients of cells and outputs only, and none of
// the gates and activations inside of the cell.
bool has_gates(const RuleContext& r, std::initializer_list<int> gates) {
  return std::ranges::any_of(gates, [&](int port) { return r.has_grad(port); });
}

// --- LSTM -------------------------------------------------------------------

graph::Inputs all_inputs(RuleContext& r) {
  graph::Inputs inputs;
  for (int i = 0; i < r.num_inputs(); ++i) inputs.add(r.input(i));
  return inputs;
}

constexpr std::string_view kLstmAttrs[] = {"use_peephole"};

// All steps: the gradient op has everything.
void block_lstm_rule(RuleContext& r) {
  if (has_gates(r, {kI, kF, kO, kCi, kCo}))
    return set_by_expression(r, express_lstm);
  graph::Inputs inputs = all_inputs(r);
  for (int port = kI; port <= kH; ++port) inputs.add(r.output(port));
  inputs.add(r.grad(kCs)).add(r.grad(kH));
  const char* op =
      r.node().op() == "BlockLSTM" ? "BlockLSTMGrad" : "BlockLSTMGradV2";
  const graph::OpResult grads =
      r.scope().op(op, inputs, copied_attrs(r.node(), kLstmAttrs));
  for (int i = 1; i < r.num_inputs(); ++i) r.set(i, grads[i - 1]);
}

// One step: the gradient op returns the gradients of the gates; the products
// with weights are made from these. Inputs: x, cs_prev, h_prev, w, wci, wcf,
// wco, b.
void lstm_cell_rule(RuleContext& r) {
  if (has_gates(r, {kI, kF, kO, kCi, kCo}))
    return set_by_expression(r, express_lstm);
  const Scope& s = r.scope();
  graph::Inputs inputs = all_inputs(r);
  for (int port : {kI, kCs, kF, kO, kCi, kCo}) inputs.add(r.output(port));
  inputs.add(r.grad(kCs)).add(r.grad(kH));
  const graph::OpResult grads =
      s.op("LSTMBlockCellGrad", inputs, copied_attrs(r.node(), kLstmAttrs));
  r.set(1, grads[0]);
  for (int i = 4; i < 7; ++i) r.set(i, grads[i - 2]);
  const Output of_gates = grads[1];
  if (r.wants(0) || r.wants(2)) {
    const Output joined =
        ops::matmul(s, of_gates, r.input(3), {.transpose_b = true});
    const Output columns_of_x =
        ops::slice(s, r.input_shape(0), r.ints({1}), r.ints({1}));
    const Output zero = r.ints({0});
    const Output start = ops::concat(s, {zero, columns_of_x}, 0);
    r.set(0, ops::slice(s, joined, r.ints({0, 0}),
                        ops::concat(s, {r.ints({-1}), columns_of_x}, 0)));
    r.set(2, ops::slice(s, joined, start, r.ints({-1, -1})));
  }
  if (r.wants(3)) {
    const Output joined = ops::concat(s, {r.input(0), r.input(2)}, 1);
    r.set(3, ops::matmul(s, joined, of_gates, {.transpose_a = true}));
  }
  if (r.wants(7)) r.set(7, s.op("BiasAddGrad", {of_gates}));
}

// --- GRU --------------------------------------------------------------------

// Inputs: x, h_prev, w_ru, w_c, b_ru, b_c; outputs: r, u, c, h.
void gru_cell_rule(RuleContext& r) {
  if (has_gates(r, {0, 1, 2})) return set_by_expression(r, express_gru_cell);
  const Scope& s = r.scope();
  graph::Inputs inputs = all_inputs(r);
  for (int port : {0, 1, 2}) inputs.add(r.output(port));
  const graph::OpResult grads = s.op("GRUBlockCellGrad", inputs.add(r.grad(3)));
  r.set(0, grads[0]);
  r.set(1, grads[1]);
  const Output of_c = grads[2], of_ru = grads[3];
  if (r.wants(2)) {
    const Output joined = ops::concat(s, {r.input(0), r.input(1)}, 1);
    r.set(2, ops::matmul(s, joined, of_ru, {.transpose_a = true}));
  }
  if (r.wants(3)) {
    const Output reset = ops::mul(s, r.input(1), r.output(0));
    const Output joined = ops::concat(s, {r.input(0), reset}, 1);
    r.set(3, ops::matmul(s, joined, of_c, {.transpose_a = true}));
  }
  if (r.wants(4)) r.set(4, s.op("BiasAddGrad", {of_ru}));
  if (r.wants(5)) r.set(5, s.op("BiasAddGrad", {of_c}));
}

// The kernel of the loss computes its gradient, too, for each row of the batch.
void ctc_loss_rule(RuleContext& r) {
  if (r.has_grad(1))
    return r.fail("its second derivative is not defined, as in TensorFlow");
  const Scope& s = r.scope();
  const Output of_rows = ops::expand_dims(s, r.grad(0), -1);
  r.set(0, ops::mul(s, of_rows, r.output(1)));
}

}  // namespace

void add_recurrent_rules(RuleTable& table) {
  table.add("LSTMBlockCell", lstm_cell_rule);
  table.add({"BlockLSTM", "BlockLSTMV2"}, block_lstm_rule);
  table.add("GRUBlockCell", gru_cell_rule);
  table.add({"LSTMBlockCellGrad", "BlockLSTMGrad", "BlockLSTMGradV2"},
            [](RuleContext& r) { set_by_expression(r, express_lstm_grad); });
  table.add("GRUBlockCellGrad", [](RuleContext& r) {
    set_by_expression(r, express_gru_cell_grad);
  });
  table.add({"CTCLoss", "CTCLossV2"}, ctc_loss_rule);
  table.add_none({"CTCGreedyDecoder", "CTCBeamSearchDecoder"},
                 "its labels are numbers of classes");
  add_recurrent_forward_rules(table);
}

}  // namespace tagflow::autodiff
