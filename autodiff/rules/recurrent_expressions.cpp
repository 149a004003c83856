#include "autodiff/rules/recurrent_expressions.h"

#include "autodiff/rules/arithmetic.h"
#include "graph/builder/map_fn.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_product.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {
namespace {

// Sets the shape of a value to that of `like`, since a loop needs it, also
// if inference cannot derive it.
Output with_shape_of(const Scope& s, const Output& x, const Output& like) {
  if (!s.ok()) return x;
  if (auto shape = x.shape().merge(like.shape()); shape.ok())
    s.graph().set_output_shape(x.node(), x.port(), *std::move(shape));
  return x;
}

Output product(const Scope& s, const Output& a, const Output& b) {
  return ops::mul(s, a, b);
}
template <class... More>
Output product(const Scope& s, const Output& a, const Output& b,
               const More&... more) {
  return product(s, ops::mul(s, a, b), more...);
}

// 1 - x, a factor of sigmoid's derivative, or, with x^2, tanh's derivative.
Output rest(const Scope& s, const Output& x) { return ops::sub(s, 1, x); }

Output joined(const Scope& s, const Outputs& parts, int axis) {
  return ops::concat(s, graph::Inputs(parts), axis);
}

// The rows of a matrix of weights that x is multiplied by, and the others.
struct Weights {
  Weights(const Scope& s, const Output& x, const Output& all)
      : of_x(ops::slice(s, all, {0, 0}, join(s, columns(s, x), -1))),
        of_h(ops::slice(s, all, join(s, columns(s, x), 0), {-1, -1})) {}

  static Output columns(const Scope& s, const Output& x) {
    return ops::slice(s, ops::shape(s, x),
                      ops::sub(s, ops::reshape(s, ops::rank(s, x), {1}), 1),
                      {1});
  }
  static Output join(const Scope& s, const Output& first, int32_t second) {
    return ops::concat(s, {first, Tensor::vector<int32_t>({second})}, 0);
  }

  Output of_x, of_h;
};

// a b^T
Output times_transposed(const Scope& s, const Output& a, const Output& b) {
  return ops::matmul(s, a, b, {.transpose_b = true});
}

// --- LSTM -------------------------------------------------------------------

// The parameters of an LSTM op or its gradient, from the node.
struct LstmForm {
  explicit LstmForm(const Node& node)
      : has_time(node.op().starts_with("Block")),
        has_peephole(node.attr<bool>("use_peephole").value()) {
    if (const auto bias = node.attr<float>("forget_bias"); bias.ok())
      forget_bias = *bias;
    if (const auto clip = node.attr<float>("cell_clip"); clip.ok())
      cell_clip = *clip;
    if (node.op().ends_with("V2")) std::swap(candidate, forget);
  }

  // The gates, in the order in which they are in a row of 4 * cells.
  Output row(const Scope& s, const Output& i, const Output& ci, const Output& f,
             const Output& o) const {
    std::vector<Output> parts(4);
    parts[kInput] = i;
    parts[candidate] = ci;
    parts[forget] = f;
    parts[kOutput] = o;
    return joined(s, parts, 1);
  }

  static constexpr size_t kInput = 0, kOutput = 3;
  size_t candidate = 1, forget = 2;
  bool has_time, has_peephole;
  float forget_bias = 0, cell_clip = 0;
};

// The inputs that forward and backward begin with.
struct LstmInputs {
  LstmInputs(const LstmForm& form, const Outputs& in) {
    size_t next = 0;
    if (form.has_time) length = in[next++];
    for (Output* each : {&x, &cs_prev, &h_prev, &w, &wci, &wcf, &wco, &b})
      *each = in[next++];
    while (next < in.size()) more.push_back(in[next++]);
  }

  Output length;  // the number of computed steps
  Output x, cs_prev, h_prev, w, wci, wcf, wco, b;
  Outputs more;
};

// Zeros if a step is not computed.
Output computed_only(const Scope& s, const Output& length, const Output& x) {
  const Output steps = ops::gather(s, ops::shape(s, x), 0);
  const Output is_computed = ops::less(s, ops::range(s, 0, steps, 1),
                                       ops::cast(s, length, DataType::kInt32));
  const Output mask = ops::reshape(s, is_computed, {-1, 1, 1});
  return ops::select(s, mask, x, 0);
}

// By LstmPort. Gradients ignore clipping, as in TensorFlow.
Outputs lstm_step(const Scope& s, const LstmForm& form, const LstmInputs& in,
                  const Output& x, const Output& cs_prev,
                  const Output& h_prev) {
  const Output products = ops::matmul(s, ops::concat(s, {x, h_prev}, 1), in.w);
  const Outputs gates = ops::split(s, 1, ops::add(s, products, in.b), 4);
  const auto gate = [&](size_t which, const Output& cs, const Output& weights) {
    const Output& own = gates[which];
    return ops::sigmoid(s, form.has_peephole
                               ? ops::add(s, own, ops::mul(s, cs, weights))
                               : own);
  };
  std::vector<Output> out(7);
  out[kI] = gate(LstmForm::kInput, cs_prev, in.wci);
  Output forget = gates[form.forget];
  if (form.has_peephole)
    forget = ops::add(s, forget, ops::mul(s, cs_prev, in.wcf));
  out[kF] = ops::sigmoid(s, ops::add(s, forget, form.forget_bias));
  out[kCi] = ops::tanh(s, gates[form.candidate]);
  Output cs = ops::add(s, ops::mul(s, out[kI], out[kCi]),
                       ops::mul(s, out[kF], cs_prev));
  if (form.cell_clip > 0) {
    const Output clipped =
        ops::minimum(s, ops::maximum(s, cs, -form.cell_clip), form.cell_clip);
    cs = ops::add(s, cs, ops::stop_gradient(s, ops::sub(s, clipped, cs)));
  }
  out[kCs] = cs;
  out[kCo] = ops::tanh(s, cs);
  out[kO] = gate(LstmForm::kOutput, cs, in.wco);
  out[kH] = ops::mul(s, out[kO], out[kCo]);
  for (Output& each : out) with_shape_of(s, each, cs_prev);
  return out;
}

// The results of the forward pass of a step, and the gradients of cs and h.
struct LstmStep {
  Output i, cs, f, o, ci, co, cs_prev, cs_grad, h_grad;
  TAGFLOW_FIELDS(i, cs, f, o, ci, co, cs_prev, cs_grad, h_grad)
};

struct LstmStepGradient {
  Output gates, cs_prev;
};

LstmStepGradient lstm_step_back(const Scope& s, const LstmForm& form,
                                const LstmInputs& in, const LstmStep& at) {
  const Output of_o = product(s, at.o, rest(s, at.o), at.h_grad, at.co);
  Output of_cs =
      ops::add(s, product(s, rest(s, ops::square(s, at.co)), at.h_grad, at.o),
               at.cs_grad);
  if (form.has_peephole) of_cs = ops::add(s, of_cs, ops::mul(s, of_o, in.wco));
  const Output of_c = product(s, rest(s, ops::square(s, at.ci)), of_cs, at.i);
  const Output of_f = product(s, at.f, rest(s, at.f), of_cs, at.cs_prev);
  const Output of_i = product(s, at.i, rest(s, at.i), of_cs, at.ci);
  Output of_cs_prev = ops::mul(s, of_cs, at.f);
  if (form.has_peephole)
    of_cs_prev = ops::add(
        s, of_cs_prev,
        ops::add(s, ops::mul(s, of_i, in.wci), ops::mul(s, of_f, in.wcf)));
  return {form.row(s, of_i, of_c, of_f, of_o), of_cs_prev};
}

// Of wci, wcf and wco, from the gradients of the gates, which are matrices.
Outputs peephole_gradients(const Scope& s, const LstmForm& form,
                           const Output& gates, const Output& cs_prev,
                           const Output& cs) {
  if (!form.has_peephole) return std::vector<Output>(3);
  const Outputs parts = ops::split(s, 1, gates, 4);
  const auto of = [&](size_t gate, const Output& cells) {
    return ops::reduce_sum(s, ops::mul(s, parts[gate], cells), 0);
  };
  return {of(LstmForm::kInput, cs_prev), of(form.forget, cs_prev),
          of(LstmForm::kOutput, cs)};
}

// The state before each step: `first`, and `all` but the last.
Output before(const Scope& s, const Output& first, const Output& all) {
  const Output joined = ops::concat(s, {ops::expand_dims(s, first, 0), all}, 0);
  return ops::slice(s, joined, {0, 0, 0}, ops::shape(s, all));
}

Output as_rows(const Scope& s, const Output& sequence, const Output& columns) {
  return ops::reshape(
      s, sequence, ops::concat(s, {Tensor::vector<int32_t>({-1}), columns}, 0));
}

struct SequenceState {
  Output gates, cs, h;
  TAGFLOW_FIELDS(gates, cs, h)
};

Outputs sequence_grad(const Scope& s, const LstmForm& form,
                      const LstmInputs& in) {
  const Output cs_prev = before(s, in.cs_prev, in.more[kCs]);
  const auto computed = [&](const Output& x) {
    return computed_only(s, in.length, x);
  };
  const LstmStep steps{in.more[kI], in.more[kCs],         in.more[kF],
                       in.more[kO], in.more[kCi],         in.more[kCo],
                       cs_prev,     computed(in.more[7]), computed(in.more[8])};
  const Weights w(s, in.x, in.w);
  const Output none = ops::zeros_like(s, in.cs_prev);
  const SequenceState last{joined(s, {none, none, none, none}, 1), none, none};
  // From the last step to the first.
  const SequenceState all = graph::scan(
      s,
      [&](const Scope& t, const SequenceState& after, LstmStep at) {
        at.cs_grad = ops::add(t, at.cs_grad, after.cs);
        at.h_grad = ops::add(t, at.h_grad, after.h);
        const LstmStepGradient grad = lstm_step_back(t, form, in, at);
        const Output h = times_transposed(t, grad.gates, w.of_h);
        return SequenceState{with_shape_of(t, grad.gates, last.gates),
                             with_shape_of(t, grad.cs_prev, none),
                             with_shape_of(t, h, none)};
      },
      steps, last, {.reverse = true});
  // For 0 steps there is no first one.
  const auto first = [&](const Output& sequence) {
    return ops::gather(
        s, ops::concat(s, {sequence, ops::expand_dims(s, none, 0)}, 0), 0);
  };
  const Output width = ops::shape(s, in.b);
  const Output cells = Weights::columns(s, in.cs_prev);
  const Output gates = as_rows(s, all.gates, width);
  const Output h_prev = before(s, in.h_prev, in.more[kH]);
  const Output rows =
      ops::concat(s,
                  {as_rows(s, computed(in.x), Weights::columns(s, in.x)),
                   as_rows(s, h_prev, cells)},
                  1);
  Outputs out{
      ops::reshape(s, times_transposed(s, gates, w.of_x), ops::shape(s, in.x)),
      first(all.cs), first(all.h),
      ops::matmul(s, rows, gates, {.transpose_a = true})};
  for (const Output& each :
       peephole_gradients(s, form, gates, as_rows(s, cs_prev, cells),
                          as_rows(s, in.more[kCs], cells)))
    out.push_back(each);
  out.push_back(ops::reduce_sum(s, gates, 0));
  return out;
}

}  // namespace

Outputs express_lstm(const Scope& s, const Node& node, const Outputs& inputs) {
  const LstmForm form(node);
  const LstmInputs in(form, inputs);
  if (!form.has_time)
    return lstm_step(s, form, in, in.x, in.cs_prev, in.h_prev);
  const Output none = ops::zeros_like(s, in.cs_prev);
  std::vector<Output> first(7, none);
  first[kCs] = in.cs_prev;
  first[kH] = with_shape_of(s, in.h_prev, in.cs_prev);
  const Outputs all = graph::scan(
      s,
      [&](const Scope& t, const Outputs& last, const Output& x) {
        return lstm_step(t, form, in, x, last[kCs], last[kH]);
      },
      computed_only(s, in.length, in.x), Outputs(first));
  Outputs out;
  for (const Output& each : all)
    out.push_back(computed_only(s, in.length, each));
  return out;
}

Outputs express_lstm_grad(const Scope& s, const Node& node,
                          const Outputs& inputs) {
  const LstmForm form(node);
  const LstmInputs in(form, inputs);
  if (form.has_time) return sequence_grad(s, form, in);
  const LstmStepGradient grad = lstm_step_back(
      s, form, in,
      {in.more[kI], in.more[kCs], in.more[kF], in.more[kO], in.more[kCi],
       in.more[kCo], in.cs_prev, in.more[6], in.more[7]});
  Outputs out{grad.cs_prev, grad.gates};
  for (const Output& each :
       peephole_gradients(s, form, grad.gates, in.cs_prev, in.more[kCs]))
    out.push_back(each);
  return out;
}

// --- GRU --------------------------------------------------------------------

Outputs express_gru_cell(const Scope& s, const Node&, const Outputs& inputs) {
  const Output &x = inputs[0], &h_prev = inputs[1];
  const auto weighted = [&](const Output& h, const Output& w, const Output& b) {
    return ops::add(s, ops::matmul(s, ops::concat(s, {x, h}, 1), w), b);
  };
  const Outputs gates = ops::split(
      s, 1, ops::sigmoid(s, weighted(h_prev, inputs[2], inputs[4])), 2);
  const Output &r = gates[0], &u = gates[1];
  const Output c =
      ops::tanh(s, weighted(ops::mul(s, h_prev, r), inputs[3], inputs[5]));
  return {r, u, c,
          ops::add(s, ops::mul(s, u, h_prev), ops::mul(s, rest(s, u), c))};
}

// From x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c and d_h.
Outputs express_gru_cell_grad(const Scope& s, const Node&,
                              const Outputs& inputs) {
  const Output &x = inputs[0], &h_prev = inputs[1];
  const Output &r = inputs[6], &u = inputs[7], &c = inputs[8];
  const Output& grad = inputs[9];
  const Weights w_ru(s, x, inputs[2]), w_c(s, x, inputs[3]);
  const Output of_c = product(s, grad, rest(s, u), rest(s, ops::square(s, c)));
  const Output of_reset = times_transposed(s, of_c, w_c.of_h);
  const Output of_r = product(s, of_reset, h_prev, r, rest(s, r));
  const Output of_u = product(s, grad, ops::sub(s, h_prev, c), u, rest(s, u));
  const Output of_ru = joined(s, {of_r, of_u}, 1);
  const Output of_h =
      ops::add(s, ops::add(s, ops::mul(s, of_reset, r), ops::mul(s, grad, u)),
               times_transposed(s, of_ru, w_ru.of_h));
  const Output of_x = ops::add(s, times_transposed(s, of_c, w_c.of_x),
                               times_transposed(s, of_ru, w_ru.of_x));
  return {of_x, of_h, of_c, of_ru};
}

}  // namespace tagflow::autodiff
