// The encoder-decoder of letters and phonemes, as a graph.
//
//   letters -> embedding -> LSTM forward, LSTM backward -> memory [b, S, units]
//                                     |  last states           |
//                                     v                        v
//   phonemes so far -> embedding -> LSTM  -> h -> attention over the memory
//          ^                                        |
//          +---- the most likely next ones <--------+   until the end is said
//
// In training the phonemes are known, so that the decoder is a loop of known
// length, and attention is one product for all of its steps (the "general"
// score of Luong, Pham and Manning, "Effective approaches to attention-based
// neural machine translation", 2015, without its input feeding).
#pragma once

#include <string>

#include "autodiff/train/optimizer.h"
#include "graph/builder/rnn_cell.h"
#include "graph/builder/scope.h"
#include "graph/builder/variable_scope.h"

namespace tagflow::g2p {

struct ModelOptions {
  int64_t phonemes = 0;  // distinct ones, with the end
  int64_t units = 128;
  int64_t embedding = 64;
};

// The feeds: n words of at most S letters and T phonemes, the end included;
// int32. Letters are padded by kPadding, phonemes by kEnd.
struct Words {
  graph::Output letters;        // [n, S]
  graph::Output letter_counts;  // [n]
};
struct Spoken {
  graph::Output phonemes;        // [n, T]
  graph::Output phoneme_counts;  // [n]
};
// Placeholders "letters", "letter_counts", "phonemes", "phoneme_counts".
Words words_to_feed(const graph::Scope& s);
Spoken spoken_to_feed(const graph::Scope& s);

// Makes the subgraphs that use the variables, in any order. Thread-compatible,
// like the graph.
class Model {
 public:
  Model(graph::VariableScope vars, const ModelOptions& options)
      : vars_(vars.with_reuse(graph::Reuse::kAuto)), options_(options) {}

  // The mean of -log p over all phonemes and ends: a scalar.
  graph::Output loss(const graph::Scope& s, const Words& words,
                     const Spoken& spoken) const;

  struct Hypotheses {
    graph::Output phonemes;  // [n, width, L], kEnd after the last one
    graph::Output scores;    // [n, width], log p, the best first
    // An int32 scalar: trips of the loop. Hypotheses of this many phonemes have
    // not reached their end yet.
    graph::Output steps;
  };
  // Beam search, as a loop that goes on until the best hypothesis of each word
  // has ended: no other can become better then, since scores only decrease. A
  // hypothesis without an end after 2 S + 8 phonemes is cut off there. With
  // width 1 it is greedy: the most likely phoneme at each step. REQUIRES: 1 <=
  // width <= phonemes
  Hypotheses pronounce(const graph::Scope& s, const Words& words,
                       int width) const;

 private:
  struct Encoded;
  struct Beam;
  Encoded encode(const graph::Scope& s, const Words& words) const;
  graph::Output embed(const graph::Scope& s,
                      const graph::Output& phonemes) const;
  graph::Output read_out(const graph::Scope& s, const Encoded& encoded,
                         const graph::Output& h) const;
  graph::RnnCellPtr cell() const;

  graph::VariableScope vars_;
  ModelOptions options_;
};

}  // namespace tagflow::g2p
