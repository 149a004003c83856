// lstm_cell().
#include "graph/builder/ops_activation.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_product.h"
#include "graph/builder/rnn_cell.h"

namespace tagflow::graph {

namespace {

// The tensors that all steps share.
struct LstmWeights {
  Output kernel, bias;
  Output f_peephole, i_peephole, o_peephole;  // invalid: none
  Output projection;
  Output axis;                 // for joining the input and splitting gates
  Output forget_bias;          // invalid: none
  Output least, most;          // of c
  Output least_out, most_out;  // of the projection
};

// Adds x * weight to the gate.
Output with_peephole(const Scope& in, const Output& gate, const Output& weight,
                     const Output& c) {
  return weight.valid() ? Output(ops::add(in, gate, ops::mul(in, weight, c)))
                        : gate;
}

Output clipped(const Scope& in, const Output& x, const Output& least,
               const Output& most) {
  return least.valid() ? Output(ops::clip_by_value(in, x, least, most)) : x;
}

CellStep lstm_step(const LstmWeights& w, const ActivationFn& activation,
                   const Scope& in, const Output& x, const Outputs& state) {
  const auto act = [&](const Output& v) {
    return activation ? activation(in, v) : Output(ops::tanh(in, v));
  };
  const Output before = state[0];  // c
  const Output joined = ops::concat(in, {x, state[1]}, w.axis);
  const Output all =
      ops::bias_add(in, ops::matmul(in, joined, w.kernel), w.bias);
  const Outputs gates = ops::split(in, w.axis, all, 4);
  Output f = gates[2];
  if (w.forget_bias.valid()) f = ops::add(in, f, w.forget_bias);
  f = with_peephole(in, f, w.f_peephole, before);
  const Output i = with_peephole(in, gates[0], w.i_peephole, before);
  Output c = ops::add(in, ops::mul(in, ops::sigmoid(in, f), before),
                      ops::mul(in, ops::sigmoid(in, i), act(gates[1])));
  c = clipped(in, c, w.least, w.most);
  const Output o = with_peephole(in, gates[3], w.o_peephole, c);
  Output h = ops::mul(in, ops::sigmoid(in, o), act(c));
  if (w.projection.valid())
    h = clipped(in, ops::matmul(in, h, w.projection), w.least_out, w.most_out);
  return {h, {c, h}};
}

class LstmCell final : public RnnCell {
 public:
  explicit LstmCell(LstmCellOptions options) : o_(std::move(options)) {
    if (o_.name.empty()) o_.name = "lstm_cell";
  }

  std::vector<StatePart> state() const override {
    return {{"c", o_.units, true}, {"h", output_size()}};
  }
  int64_t output_size() const override {
    return o_.projection > 0 ? o_.projection : o_.units;
  }
  CellFn build(const Scope& s, const VariableScope& vars, int64_t input_size,
               DataType dtype) const override {
    if (!check(s)) return {};
    const VariableScope own = vars.sub_scope(o_.name);
    LstmWeights w;
    const auto get = [&](const VariableScope& scope, const char* name,
                         const Shape& shape, const Initializer& initializer) {
      return scope
          .get(s, name, shape, {.dtype = dtype, .initializer = initializer})
          .read(s);
    };
    w.kernel = get(own, "kernel", {input_size + output_size(), 4 * o_.units},
                   o_.kernel_initializer);
    w.bias = get(own, "bias", {4 * o_.units}, initializers::zeros());
    if (o_.peepholes) {
      const Shape diagonal{o_.units};
      w.f_peephole = get(own, "w_f_diag", diagonal, o_.kernel_initializer);
      w.i_peephole = get(own, "w_i_diag", diagonal, o_.kernel_initializer);
      w.o_peephole = get(own, "w_o_diag", diagonal, o_.kernel_initializer);
    }
    if (o_.projection > 0)
      w.projection = get(own.sub_scope("projection"), "kernel",
                         {o_.units, o_.projection}, o_.kernel_initializer);
    w.axis = s.resolve(1, DataType::kInt32, "axis");
    if (o_.forget_bias != 0)
      w.forget_bias = s.resolve(o_.forget_bias, dtype, "forget_bias");
    set_limits(s, o_.cell_clip, dtype, w.least, w.most);
    set_limits(s, o_.projection_clip, dtype, w.least_out, w.most_out);
    return [w, act = o_.activation](const Scope& in, const Output& x,
                                    const Outputs& state) {
      return lstm_step(w, act, in, x, state);
    };
  }

 private:
  bool check(const Scope& s) const {
    if (o_.units <= 0 || o_.projection < 0)
      s.fail(invalid_argument(
          "[{}] a cell has 1 unit or more, and a projection is not negative: "
          "not {} and {}",
          o_.name, o_.units, o_.projection));
    if (!(o_.cell_clip >= 0 && o_.projection_clip >= 0))
      s.fail(invalid_argument(
          "[{}] the limits of clipping are not negative: not {} and {}",
          o_.name, o_.cell_clip, o_.projection_clip));
    return s.ok();
  }
  static void set_limits(const Scope& s, double clip, DataType dtype,
                         Output& least, Output& most) {
    if (clip == 0) return;
    least = s.resolve(-clip, dtype, "least");
    most = s.resolve(clip, dtype, "most");
  }

  LstmCellOptions o_;
};

}  // namespace

RnnCellPtr lstm_cell(LstmCellOptions options) {
  return std::make_shared<LstmCell>(std::move(options));
}

}  // namespace tagflow::graph
