#include "apps/examples/g2p/model.h"

#include "apps/examples/g2p/lexicon.h"
#include "autodiff/train/layer.h"
#include "autodiff/train/loss.h"
#include "graph/builder/builder.h"

namespace tagflow::g2p {

using namespace graph;       // NOLINT: the builder's vocabulary
using namespace graph::ops;  // NOLINT
namespace layers = autodiff::layers;
namespace losses = autodiff::losses;

namespace {

// log p of the impossible. Finite, so that differences are not NaN.
constexpr float kImpossible = -1e9f;

Output dimension(const Scope& s, const Output& x, int i) {
  return gather(s, shape(s, x), i);
}

// 1 for elements below `counts` and 0 beyond, float: [n, size].
Output mask(const Scope& s, const Output& counts, const Output& size) {
  const Output places = expand_dims(s, range(s, 0, size, 1), 0);
  return cast(s, less(s, places, expand_dims(s, counts, 1)), DataType::kFloat);
}

}  // namespace

Words words_to_feed(const Scope& s) {
  return {placeholder(s.named("letters"), DataType::kInt32, {-1, -1}),
          placeholder(s.named("letter_counts"), DataType::kInt32, {-1})};
}

Spoken spoken_to_feed(const Scope& s) {
  return {placeholder(s.named("phonemes"), DataType::kInt32, {-1, -1}),
          placeholder(s.named("phoneme_counts"), DataType::kInt32, {-1})};
}

struct Model::Encoded {
  Output memory;    // [n, S, units]
  Output absences;  // [n, 1, S]: 0, or kImpossible where there is no letter
  Outputs state;    // of the decoder, [n, units] each
};

RnnCellPtr Model::cell() const { return lstm_cell({.units = options_.units}); }

Model::Encoded Model::encode(const Scope& s, const Words& words) const {
  const Output x = layers::embedding(
      s, vars_, words.letters,
      {.rows = kLetters, .columns = options_.embedding, .name = "letters"});
  const BidirectionalResult both = bidirectional_dynamic_rnn(
      s, vars_, *cell(), *cell(), x,
      {.sequence_length = words.letter_counts, .scope = "encoder"});
  if (!s.ok()) return {};
  Encoded encoded;
  encoded.memory = layers::dense(
      s, vars_, concat(s, {both.forward.outputs, both.backward.outputs}, 2),
      {.units = options_.units, .use_bias = false, .name = "memory"});
  const Output present =
      mask(s, words.letter_counts, dimension(s, words.letters, 1));
  encoded.absences = expand_dims(s, mul(s, sub(s, 1, present), kImpossible), 1);
  for (const size_t part : {0, 1}) {
    const Output ends =
        concat(s, {both.forward.state[part], both.backward.state[part]}, 1);
    encoded.state.push_back(
        layers::dense(s, vars_, ends,
                      {.units = options_.units,
                       .activation = ops::tanh,
                       .name = part == 0 ? "first_c" : "first_h"}));
  }
  return encoded;
}

Output Model::embed(const Scope& s, const Output& phonemes) const {
  return layers::embedding(s, vars_, phonemes,
                           {.rows = options_.phonemes,
                            .columns = options_.embedding,
                            .name = "phonemes"});
}

// Logits of the next phoneme for states h of [n, m, units]: m moments, or m
// hypotheses, of each word.
Output Model::read_out(const Scope& s, const Encoded& encoded,
                       const Output& h) const {
  const Output scores = add(
      s, batch_matmul(s, h, encoded.memory, {.adj_y = true}), encoded.absences);
  const Output context = batch_matmul(s, softmax(s, scores), encoded.memory);
  const Output joined = layers::dense(
      s, vars_, concat(s, {h, context}, 2),
      {.units = options_.units, .activation = ops::tanh, .name = "attention"});
  return layers::dense(s, vars_, joined,
                       {.units = options_.phonemes, .name = "next"});
}

Output Model::loss(const Scope& s, const Words& words,
                   const Spoken& spoken) const {
  const Encoded encoded = encode(s, words);
  if (!s.ok()) return {};
  // The decoder's inputs: the previous phonemes, and the end before the first
  // one.
  const Output before = strided_slice(s, spoken.phonemes, {0, 0}, {0, -1},
                                      {1, 1}, {.begin_mask = 3, .end_mask = 1});
  const Output inputs =
      pad(s, before, constant(s, Tensor::of<int32_t>({2, 2}, {0, 0, 1, 0})));
  const RnnResult decoded =
      dynamic_rnn(s, vars_, *cell(), embed(s, inputs),
                  {.sequence_length = spoken.phoneme_counts,
                   .initial_state = encoded.state,
                   .scope = "decoder"});
  if (!s.ok()) return {};
  const Output each = losses::sparse_softmax_cross_entropy(
      s, read_out(s, encoded, decoded.outputs), spoken.phonemes,
      losses::Reduction::kNone);
  const Output counted =
      mask(s, spoken.phoneme_counts, dimension(s, spoken.phonemes, 1));
  return real_div(s, reduce_sum(s, mul(s, each, counted)),
                  reduce_sum(s, counted));
}

// The hypotheses of n words, `width` of each.
struct Model::Beam {
  Output step;
  Output c, h;      // [n, width, units]
  Output last;      // [n, width], the last phoneme
  Output phonemes;  // [n, width, L]
  Output scores;    // [n, width]
  Output ended;     // [n, width], bool
  TAGFLOW_FIELDS(step, c, h, last, phonemes, scores, ended)
};

Model::Hypotheses Model::pronounce(const Scope& s, const Words& words,
                                   int width) const {
  const Encoded encoded = encode(s, words);
  const CellFn step = cell()->build(s, vars_.sub_scope("decoder"),
                                    options_.embedding, DataType::kFloat);
  if (!s.ok()) return {};
  const int64_t units = options_.units, count = options_.phonemes;
  const Output n = dimension(s, words.letters, 0);
  const Output limit = add(s, mul(s, dimension(s, words.letters, 1), 2), 8);
  const auto full = [&](const Inputs& dims, const Input& value,
                        const PartialShape& shape) {
    return ensure_shape(s, fill(s, pack(s, dims), value), shape);
  };
  const auto for_each = [&](const Output& state) {
    return ensure_shape(s, tile(s, expand_dims(s, state, 1), {1, width, 1}),
                        {-1, width, units});
  };
  // At first all hypotheses of a word are the same, so that only one counts.
  std::vector<float> first(size_t(width), kImpossible);
  first[0] = 0;
  Beam beam;
  beam.step = constant(s, 0);
  beam.c = for_each(encoded.state[0]);
  beam.h = for_each(encoded.state[1]);
  beam.last = full({n, width}, constant(s, kEnd), {-1, width});
  beam.phonemes = full({n, width, limit}, constant(s, kEnd), {-1, width, -1});
  beam.scores =
      ensure_shape(s,
                   tile(s, constant(s, Tensor::of<float>({1, width}, first)),
                        pack(s, {n, 1})),
                   {-1, width});
  beam.ended = full({n, width}, false, {-1, width});

  // An ended hypothesis continues only with the end, at no cost.
  std::vector<float> end(size_t(count), kImpossible);
  end[kEnd] = 0;
  const Output ends = constant(s, Tensor::of<float>({1, 1, count}, end));
  const Output places = reshape(s, range(s, 0, limit, 1), {1, 1, -1});

  const auto goes_on = [&](const Scope& in, const Beam& v) {
    const Output best = slice(in, v.ended, {0, 0}, {-1, 1});
    return logical_and(in, less(in, v.step, limit),
                       logical_not(in, reduce_all(in, best)));
  };
  const auto body = [&](const Scope& in, const Beam& v) {
    const auto rows = [&](const Output& x, int64_t size) {
      return reshape(in, x, {int64_t{-1}, size});
    };
    const CellStep now = step(in, rows(embed(in, v.last), options_.embedding),
                              {rows(v.c, units), rows(v.h, units)});
    const auto of_words = [&](const Output& x) {
      return reshape(in, x, {int64_t{-1}, int64_t{width}, units});
    };
    const Output c = of_words(now.state[0]), h = of_words(now.state[1]);
    const Output next = log_softmax(in, read_out(in, encoded, h));
    const Output each = select(in, expand_dims(in, v.ended, 2), ends, next);
    const Output scores = add(in, expand_dims(in, v.scores, 2), each);
    const TopKOutputs best = top_k(in, rows(scores, width * count), width);
    const Output parents = floor_div(in, best.indices, int32_t(count));
    const auto of_parents = [&](const Output& x, const PartialShape& shape) {
      return ensure_shape(in, gather(in, x, parents, 1, 1), shape);
    };
    Beam v_next;
    v_next.step = add(in, v.step, 1);
    v_next.c = of_parents(c, {-1, width, units});
    v_next.h = of_parents(h, {-1, width, units});
    v_next.last = floor_mod(in, best.indices, int32_t(count));
    v_next.scores = best.values;
    v_next.ended = logical_or(in, of_parents(v.ended, {-1, width}),
                              equal(in, v_next.last, kEnd));
    v_next.phonemes = ensure_shape(
        in,
        select(in, equal(in, places, v.step), expand_dims(in, v_next.last, 2),
               of_parents(v.phonemes, {-1, width, -1})),
        {-1, width, -1});
    return v_next;
  };
  const Beam last = while_loop(s, goes_on, body, beam);
  return {last.phonemes, last.scores, last.step};
}

}  // namespace tagflow::g2p
