#include "graph/builder/rnn_cell.h"

#include "graph/builder/ops_activation.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_product.h"

namespace tagflow::graph {

Outputs RnnCell::zero_state(const Scope& s, const Input& batch,
                            DataType dtype) const {
  Outputs zeros;
  const Output rows = s.resolve(batch, DataType::kInt32, "batch");
  for (const StatePart& part : state()) {
    const Output dims = ops::pack(s, {rows, part.size});
    zeros.push_back(ops::fill(s, dims, s.resolve(0, dtype, "zero")));
  }
  return zeros;
}

namespace {

bool check_units(const Scope& s, const std::string& cell, int64_t units) {
  if (units > 0) return s.ok();
  s.fail(
      invalid_argument("[{}] a cell has 1 unit or more, not {}", cell, units));
  return false;
}

// A product with a kernel, and a bias; both are variables.
class Dense {
 public:
  Dense() = default;
  Dense(const Scope& s, const VariableScope& vars, int64_t rows,
        int64_t columns, DataType dtype, const Initializer& kernel, double bias)
      : kernel_(vars.get(s, "kernel", {rows, columns},
                         {.dtype = dtype, .initializer = kernel})
                    .read(s)),
        bias_(vars.get(s, "bias", {columns},
                       {.dtype = dtype,
                        .initializer = initializers::constant(bias)})
                  .read(s)) {}
  Output operator()(const Scope& in, const Output& x) const {
    return ops::bias_add(in, ops::matmul(in, x, kernel_), bias_);
  }

 private:
  Output kernel_, bias_;
};

Output activated(const ActivationFn& fn, const Scope& in, const Output& x) {
  return fn ? fn(in, x) : Output(ops::tanh(in, x));
}

class BasicRnnCell final : public RnnCell {
 public:
  explicit BasicRnnCell(RnnCellOptions options) : o_(std::move(options)) {}

  std::vector<StatePart> state() const override { return {{"h", o_.units}}; }
  int64_t output_size() const override { return o_.units; }
  CellFn build(const Scope& s, const VariableScope& vars, int64_t input_size,
               DataType dtype) const override {
    if (!check_units(s, o_.name, o_.units)) return {};
    const Dense dense(s, vars.sub_scope(o_.name), input_size + o_.units,
                      o_.units, dtype, o_.kernel_initializer, 0);
    const Output axis = s.resolve(1, DataType::kInt32, "axis");
    return [=, act = o_.activation](const Scope& in, const Output& x,
                                    const Outputs& state) -> CellStep {
      const Output joined = ops::concat(in, {x, state[0]}, axis);
      const Output h = activated(act, in, dense(in, joined));
      return {h, h};
    };
  }

 private:
  const RnnCellOptions o_;
};

class GruCell final : public RnnCell {
 public:
  explicit GruCell(RnnCellOptions options) : o_(std::move(options)) {}

  std::vector<StatePart> state() const override { return {{"h", o_.units}}; }
  int64_t output_size() const override { return o_.units; }
  CellFn build(const Scope& s, const VariableScope& vars, int64_t input_size,
               DataType dtype) const override {
    if (!check_units(s, o_.name, o_.units)) return {};
    const VariableScope own = vars.sub_scope(o_.name);
    const int64_t rows = input_size + o_.units;
    const Dense gates(s, own.sub_scope("gates"), rows, 2 * o_.units, dtype,
                      o_.kernel_initializer, 1);
    const Dense candidate(s, own.sub_scope("candidate"), rows, o_.units, dtype,
                          o_.kernel_initializer, 0);
    const Output axis = s.resolve(1, DataType::kInt32, "axis");
    const Output one = s.resolve(1, dtype, "one");
    return [=, act = o_.activation](const Scope& in, const Output& x,
                                    const Outputs& state) -> CellStep {
      const Output h = state[0];
      const Output open =
          ops::sigmoid(in, gates(in, ops::concat(in, {x, h}, axis)));
      const Outputs r_u = ops::split(in, axis, open, 2);
      const Output u = r_u[1];
      const Output seen = ops::concat(in, {x, ops::mul(in, r_u[0], h)}, axis);
      const Output c = activated(act, in, candidate(in, seen));
      const Output next = ops::add(in, ops::mul(in, u, h),
                                   ops::mul(in, ops::sub(in, one, u), c));
      return {next, next};
    };
  }

 private:
  const RnnCellOptions o_;
};

class MultiRnnCell final : public RnnCell {
 public:
  explicit MultiRnnCell(std::vector<RnnCellPtr> cells)
      : cells_(std::move(cells)) {}

  std::vector<StatePart> state() const override {
    std::vector<StatePart> all;
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i] == nullptr) continue;
      for (StatePart part : cells_[i]->state()) {
        part.name = fmt::format("cell_{}.{}", i, part.name);
        all.push_back(std::move(part));
      }
    }
    return all;
  }
  int64_t output_size() const override {
    return cells_.empty() || cells_.back() == nullptr
               ? 0
               : cells_.back()->output_size();
  }
  CellFn build(const Scope& s, const VariableScope& vars, int64_t input_size,
               DataType dtype) const override {
    if (!s.ok()) return {};
    struct Layer {
      CellFn step;
      size_t parts;
    };
    std::vector<Layer> layers;
    const VariableScope own = vars.sub_scope("multi_rnn_cell");
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i] == nullptr) break;
      layers.push_back(
          {cells_[i]->build(s, own.sub_scope(fmt::format("cell_{}", i)),
                            input_size, dtype),
           cells_[i]->state().size()});
      input_size = cells_[i]->output_size();
    }
    if (s.ok() && (layers.empty() || layers.size() < cells_.size()))
      s.fail(invalid_argument("[multi_rnn_cell] there is no cell {}",
                              layers.size()));
    if (!s.ok()) return {};
    return [layers](const Scope& in, const Output& x,
                    const Outputs& state) -> CellStep {
      CellStep all{x, {}};
      size_t first = 0;
      for (const Layer& layer : layers) {
        Outputs own_state;
        for (size_t i = 0; i < layer.parts; ++i)
          own_state.push_back(state[first + i]);
        first += layer.parts;
        const CellStep step = layer.step(in, all.output, own_state);
        all.output = step.output;
        for (const Output& next : step.state) all.state.push_back(next);
      }
      return all;
    };
  }

 private:
  const std::vector<RnnCellPtr> cells_;
};

RnnCellOptions named(RnnCellOptions options, const char* name) {
  if (options.name.empty()) options.name = name;
  return options;
}

}  // namespace

RnnCellPtr basic_rnn_cell(RnnCellOptions options) {
  return std::make_shared<BasicRnnCell>(
      named(std::move(options), "basic_rnn_cell"));
}

RnnCellPtr gru_cell(RnnCellOptions options) {
  return std::make_shared<GruCell>(named(std::move(options), "gru_cell"));
}

RnnCellPtr multi_rnn_cell(std::vector<RnnCellPtr> cells) {
  return std::make_shared<MultiRnnCell>(std::move(cells));
}

}  // namespace tagflow::graph
