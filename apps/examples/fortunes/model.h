// A model of characters: an LSTM that predicts the next symbol.
//
//   symbols -> embedding -> LSTM -> h -> logits of the next ones -> loss
//                            ^  |
//                         c, h  c, h: variables, from piece to piece
//
//   one symbol -> embedding -> LSTM -> logits / temperature -> a draw --+
//        ^                                                              |
//        +------------------- until it is the end ----------------------+
#pragma once

#include "apps/examples/fortunes/text.h"
#include "graph/builder/rnn_cell.h"
#include "graph/builder/scope.h"
#include "graph/builder/variable_scope.h"

namespace tagflow::fortunes {

struct ModelOptions {
  int64_t units = 128;
  int64_t embedding = 32;
};

// Makes the subgraphs that use the variables, in any order. Thread-compatible,
// like the graph.
class Model {
 public:
  Model(graph::VariableScope vars, const ModelOptions& options)
      : vars_(vars.with_reuse(graph::Reuse::kAuto)), options_(options) {}

  struct Loss {
    graph::Output loss;    // the mean of -log p of all symbols but the first
    graph::Outputs state;  // after the symbols
  };
  // The loss of symbols, int32 [n, size + 1]. `state`: that before them; empty:
  // zeros.
  Loss loss(const graph::Scope& s, const graph::Output& symbols,
            const graph::Outputs& state = {}) const;

  // The state of `streams` streams, as variables that begin as zeros and are
  // not trained.
  std::vector<graph::ScopedVariable> stream_state(const graph::Scope& s,
                                                  int64_t streams) const;

  // `count` texts, drawn by a loop that goes on until each has reached its end,
  // or has `longest` symbols: int32 [steps, count], kEnd after each. The
  // temperature is a positive float scalar; below 1 it makes likely symbols
  // more likely. REQUIRES: count and longest >= 1
  graph::Output sample(const graph::Scope& s, int64_t count, int64_t longest,
                       const graph::Output& temperature) const;

 private:
  graph::RnnCellPtr cell() const;
  graph::Output embed(const graph::Scope& s,
                      const graph::Output& symbols) const;
  graph::Output logits(const graph::Scope& s, const graph::Output& h) const;

  graph::VariableScope vars_;
  ModelOptions options_;
};

}  // namespace tagflow::fortunes
