// Fused recurrent cells in forward mode, from their outputs: transposed rules
// would compute all of them again. Like the gradients, this ignores clipping of
// cells.
#include <array>
#include <initializer_list>

#include "autodiff/forward_rule.h"
#include "autodiff/rule.h"
#include "autodiff/rules/recurrent_expressions.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_product.h"
#include "graph/builder/structured_control_flow.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// Sums of tangents, where invalid means zero.
Output scaled(const Scope& s, const Output& a, const Output& b) {
  return a.valid() && b.valid() ? ops::mul(s, a, b) : Output();
}

Output sum_of(const Scope& s, std::initializer_list<Output> terms) {
  Output sum;
  for (const Output& term : terms)
    if (term.valid()) sum = sum.valid() ? ops::add(s, sum, term) : term;
  return sum;
}

Output tangent_or_none(ForwardContext& r, int input) {
  return r.has_tangent(input) ? r.tangent(input) : Output();
}

Output columns_of(const Scope& s, const Output& x, const graph::Input& begin,
                  const graph::Input& count) {
  return ops::slice(s, x, ops::pack(s, {0, begin}), ops::pack(s, {-1, count}));
}

// --- LSTM -------------------------------------------------------------------

constexpr int kLstmOutputs = 7;
// The outputs of one step.
using LstmStepTangents = std::array<Output, kLstmOutputs>;

class LstmTangents {
 public:
  // Inputs from `first` on: x, cs_prev, h_prev, w, wci, wcf, wco, b.
  LstmTangents(ForwardContext& r, int first) : r_(r), first_(first) {
    if (r.node().op().ends_with("V2")) std::swap(forget_, candidate_);
    if (!r.attr<bool>("use_peephole")) return;
    for (size_t gate = 0; gate < peepholes_.size(); ++gate) {
      peepholes_[gate] = input(4 + int(gate));
      peephole_tangents_[gate] = tangent(4 + int(gate));
    }
  }

  // One step.
  void set_cell() {
    const Scope& s = r_.scope();
    const Output joined =
        ops::concat(s, {r_.tangent(first_), r_.tangent(first_ + 2)}, 1);
    const Output gates =
        with_weights(ops::matmul(s, joined, input(3)), input(0), input(2));
    LstmStepTangents now;
    for (int port = 0; port < kLstmOutputs; ++port)
      now[size_t(port)] = r_.output(port);
    const LstmStepTangents made = step(s, gates, now, input(1), tangent(1));
    for (int port = 0; port < kLstmOutputs; ++port)
      r_.set(port, made[size_t(port)]);
  }

  // All steps, by a loop over them. Products that do not depend on the previous
  // step are computed for all steps at once.
  void set_sequence() {
    const Scope& s = r_.scope();
    const Output shape = r_.input_shape(first_);
    const Output steps = ops::gather(s, shape, 0);
    const Output inputs = ops::gather(s, shape, 2);
    const Output cells = ops::gather(s, r_.input_shape(first_ + 1), 1);
    const Output x = flat(input(0), inputs);
    const Output of_x = flat(r_.tangent(first_), inputs);
    const Output h_before = before(input(2), r_.output(kH), steps);
    const Output cs_before = before(input(1), r_.output(kCs), steps);
    const Output w_of_x =
        ops::slice(s, input(3), {0, 0}, ops::pack(s, {inputs, -1}));
    const Output w_of_h =
        ops::slice(s, input(3), ops::pack(s, {inputs, 0}), {-1, -1});
    const Output all_gates = ops::reshape(
        s, with_weights(ops::matmul(s, of_x, w_of_x), x, flat(h_before, cells)),
        ops::concat(s, {ops::slice(s, shape, {0}, {2}), {-1}}, 0));
    const auto at = [](const Scope& in, const Output& all, const Output& t) {
      return ops::gather(in, all, t);
    };
    const Output length = ops::cast(s, r_.input(0), DataType::kInt32);
    std::vector<graph::Leaf> vars{{"step", ops::zeros_like(s, length)},
                                  {"cs", r_.tangent(first_ + 1)},
                                  {"h", r_.tangent(first_ + 2)}};
    const DataType dtype = r_.input_dtype(first_);
    const AttrMap type{{"element_dtype", dtype}};
    std::vector<int> ports;
    for (int port = 0; port < kLstmOutputs; ++port) {
      if (!r_.wants(port)) continue;
      ports.push_back(port);
      vars.push_back(
          {fmt::format("output {}", port),
           s.op("TensorListReserve", {r_.input_shape(first_ + 1), steps},
                {{"element_dtype", dtype}, {"shape_type", DataType::kInt32}})});
    }
    const Outputs last = graph::structure::while_loop(
        s,
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], length);
        },
        [&](const Scope& in, const Outputs& v,
            const graph::structure::AddVariable&) {
          const Output gates = ops::add(in, at(in, all_gates, v[0]),
                                        ops::matmul(in, v[2], w_of_h));
          LstmStepTangents now;
          for (int port = 0; port < kLstmOutputs; ++port)
            now[size_t(port)] = at(in, r_.output(port), v[0]);
          const LstmStepTangents made =
              step(in, gates, now, at(in, cs_before, v[0]), v[1]);
          std::vector<graph::Leaf> next{{"step", ops::add(in, v[0], 1)},
                                        {"cs", made[kCs]},
                                        {"h", made[kH]}};
          for (size_t i = 0; i < ports.size(); ++i)
            next.push_back(
                {fmt::format("output {}", ports[i]),
                 in.op("TensorListSetItem",
                       {v[3 + i], v[0], made[size_t(ports[i])]}, type)});
          return next;
        },
        vars, {.shapes = {{"cs", PartialShape()}, {"h", PartialShape()}}});
    for (size_t i = 0; i < ports.size(); ++i)
      r_.set(ports[i], s.op("TensorListStack",
                            {last[3 + i], r_.input_shape(first_ + 1)}, type));
  }

 private:
  Output input(int i) { return r_.input(first_ + i); }
  Output tangent(int i) { return tangent_or_none(r_, first_ + i); }
  Output flat(const Output& x, const Output& columns) {
    const Scope& s = r_.scope();
    return ops::reshape(s, x, ops::pack(s, {-1, columns}));
  }
  // A state before each step.
  Output before(const Output& first, const Output& all, const Output& steps) {
    const Scope& s = r_.scope();
    const Output joined =
        ops::concat(s, {ops::expand_dims(s, first, 0), all}, 0);
    return ops::slice(s, joined, {0, 0, 0}, ops::pack(s, {steps, -1, -1}));
  }

  // The tangents of the gates, including those through weights and biases.
  Output with_weights(Output gates, const Output& x, const Output& h) {
    const Scope& s = r_.scope();
    if (const Output w = tangent(3); w.valid())
      gates = ops::add(s, gates, ops::matmul(s, ops::concat(s, {x, h}, 1), w));
    return sum_of(s, {gates, tangent(7)});
  }

  // The tangent of gate `gate` through its peephole to a cell.
  Output seen(const Scope& s, size_t gate, const Output& cell,
              const Output& tangent) {
    return sum_of(s, {scaled(s, tangent, peepholes_[gate]),
                      scaled(s, cell, peephole_tangents_[gate])});
  }

  LstmStepTangents step(const Scope& s, const Output& gates,
                        const LstmStepTangents& now, const Output& cs_before,
                        const Output& of_cs_before) {
    const graph::OpResult parts =
        s.op("Split", {1, gates}, {{"num_split", int64_t{4}}});
    const auto sigmoid = [&](LstmPort y, const Output& of_gate) -> Output {
      return s.op("SigmoidGrad", {now[y], of_gate});
    };
    const auto tanh = [&](LstmPort y, const Output& of_gate) -> Output {
      return s.op("TanhGrad", {now[y], of_gate});
    };
    LstmStepTangents made;
    made[kI] =
        sigmoid(kI, sum_of(s, {parts[0], seen(s, 0, cs_before, of_cs_before)}));
    made[kF] = sigmoid(
        kF, sum_of(s, {parts[forget_], seen(s, 1, cs_before, of_cs_before)}));
    made[kCi] = tanh(kCi, parts[candidate_]);
    made[kCs] = sum_of(
        s, {scaled(s, made[kI], now[kCi]), scaled(s, now[kI], made[kCi]),
            scaled(s, made[kF], cs_before), scaled(s, now[kF], of_cs_before)});
    made[kCo] = tanh(kCo, made[kCs]);
    made[kO] =
        sigmoid(kO, sum_of(s, {parts[3], seen(s, 2, now[kCs], made[kCs])}));
    made[kH] = sum_of(
        s, {scaled(s, made[kO], now[kCo]), scaled(s, now[kO], made[kCo])});
    return made;
  }

  ForwardContext& r_;
  const int first_;
  int candidate_ = 1, forget_ = 2;                       // the gates' order
  std::array<Output, 3> peepholes_, peephole_tangents_;  // of i, f, o
};

// --- GRU --------------------------------------------------------------------

// Inputs: x, h_prev, w_ru, w_c, b_ru, b_c; outputs: r, u, c, h.
void gru_cell_forward(ForwardContext& r) {
  const Scope& s = r.scope();
  const Output x = r.input(0), h = r.input(1);
  const Output reset = r.output(0), update = r.output(1), c = r.output(2);
  const Output of_h = tangent_or_none(r, 1);
  const auto gates = [&](const Output& other, const Output& of_other, int w,
                         int b) {
    Output made =
        ops::matmul(s, ops::concat(s, {r.tangent(0), of_other}, 1), r.input(w));
    if (r.has_tangent(w))
      made = ops::add(
          s, made, ops::matmul(s, ops::concat(s, {x, other}, 1), r.tangent(w)));
    return sum_of(s, {made, tangent_or_none(r, b)});
  };
  const Output of_both = gates(h, r.tangent(1), 2, 4);
  const Output cells = ops::gather(s, r.input_shape(1), 1);
  const Output of_reset =
      s.op("SigmoidGrad", {reset, columns_of(s, of_both, 0, cells)});
  const Output of_update =
      s.op("SigmoidGrad", {update, columns_of(s, of_both, cells, cells)});
  const Output of_inner =
      sum_of(s, {scaled(s, of_reset, h), scaled(s, reset, of_h)});
  const Output of_c =
      s.op("TanhGrad", {c, gates(ops::mul(s, reset, h), of_inner, 3, 5)});
  r.set(0, of_reset);
  r.set(1, of_update);
  r.set(2, of_c);
  // u h + (1 - u) c
  r.set(3, sum_of(s, {scaled(s, of_update, ops::sub(s, h, c)),
                      scaled(s, update, of_h),
                      scaled(s, ops::sub(s, 1, update), of_c)}));
}

}  // namespace

void add_recurrent_forward_rules(RuleTable& table) {
  table.add_forward({"LSTMBlockCell"},
                    [](ForwardContext& r) { LstmTangents(r, 0).set_cell(); });
  table.add_forward({"BlockLSTM", "BlockLSTMV2"}, [](ForwardContext& r) {
    LstmTangents(r, 1).set_sequence();
  });
  table.add_forward({"GRUBlockCell"}, gru_cell_forward);
}

}  // namespace tagflow::autodiff
