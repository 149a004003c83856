#include "apps/examples/fortunes/model.h"

#include "autodiff/train/layer.h"
#include "autodiff/train/loss.h"
#include "graph/builder/builder.h"

namespace tagflow::fortunes {

using namespace graph;       // NOLINT: the builder's vocabulary
using namespace graph::ops;  // NOLINT
namespace layers = autodiff::layers;
namespace losses = autodiff::losses;

namespace {

// Of [n, size + 1]: all columns but the last, or but the first.
Output before_last(const Scope& s, const Output& x) {
  return strided_slice(s, x, {0, 0}, {0, -1}, {1, 1},
                       {.begin_mask = 3, .end_mask = 1});
}
Output after_first(const Scope& s, const Output& x) {
  return strided_slice(s, x, {0, 1}, {0, 0}, {1, 1},
                       {.begin_mask = 1, .end_mask = 3});
}

// The variables of the loop that draws.
struct Drawing {
  Output step;
  Output symbol;  // [count], what was drawn last
  Output c, h;    // [count, units]
  Output ended;   // [count], bool
  TensorArray text;
  TAGFLOW_FIELDS(step, symbol, c, h, ended, text)
};

}  // namespace

RnnCellPtr Model::cell() const { return lstm_cell({.units = options_.units}); }

Output Model::embed(const Scope& s, const Output& symbols) const {
  return layers::embedding(
      s, vars_, symbols,
      {.rows = kSymbols, .columns = options_.embedding, .name = "symbols"});
}

Output Model::logits(const Scope& s, const Output& h) const {
  return layers::dense(s, vars_, h, {.units = kSymbols, .name = "next"});
}

Model::Loss Model::loss(const Scope& s, const Output& symbols,
                        const Outputs& state) const {
  const RnnResult read =
      dynamic_rnn(s, vars_, *cell(), embed(s, before_last(s, symbols)),
                  {.initial_state = state, .scope = "reader"});
  if (!s.ok()) return {};
  return {losses::sparse_softmax_cross_entropy(s, logits(s, read.outputs),
                                               after_first(s, symbols)),
          read.state};
}

std::vector<ScopedVariable> Model::stream_state(const Scope& s,
                                                int64_t streams) const {
  std::vector<ScopedVariable> state;
  for (const char* name : {"c", "h"})
    state.push_back(vars_.sub_scope("stream").get(
        s, name, {streams, options_.units},
        {.initializer = initializers::zeros(), .trainable = false}));
  return state;
}

Output Model::sample(const Scope& s, int64_t count, int64_t longest,
                     const Output& temperature) const {
  const CellFn read = cell()->build(s, vars_.sub_scope("reader"),
                                    options_.embedding, DataType::kFloat);
  if (!s.ok()) return {};
  const auto full = [&](const Input& value,
                        std::initializer_list<int32_t> dims) {
    return fill(s, constant(s, Tensor::vector<int32_t>(dims)), value);
  };
  const auto n = int32_t(count), units = int32_t(options_.units);
  Drawing first;
  first.step = constant(s, 0);
  first.symbol = full(constant(s, kEnd), {n});
  first.c = full(0.0f, {n, units});
  first.h = first.c;
  first.ended = full(false, {n});
  first.text = TensorArray(s, 0, DataType::kInt32,
                           {.element_shape = {count}, .dynamic_size = true});
  const auto goes_on = [&](const Scope& in, const Drawing& v) {
    return logical_and(in, less(in, v.step, longest),
                       logical_not(in, reduce_all(in, v.ended)));
  };
  const auto draw = [&](const Scope& in, const Drawing& v) {
    const CellStep now = read(in, embed(in, v.symbol), {v.c, v.h});
    const Output scaled = real_div(in, logits(in, now.output), temperature);
    const Output drawn = reshape(
        in,
        in.op("Multinomial", {scaled, 1}, {{"output_dtype", DataType::kInt32}}),
        {count});
    Drawing next;
    next.step = add(in, v.step, 1);
    next.symbol = select(in, v.ended, kEnd, drawn);
    next.c = now.state[0];
    next.h = now.state[1];
    next.ended = equal(in, next.symbol, kEnd);
    next.text = v.text.write(in, v.step, next.symbol);
    return next;
  };
  return while_loop(s, goes_on, draw, first).text.stack(s);
}

}  // namespace tagflow::fortunes
