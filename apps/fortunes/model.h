// A model of characters: an LSTM that says which symbol comes next.
//
//   symbols -> embedding -> LSTM -> h -> logits of the next ones -> loss
//                            ^  |
//                         c, h  c, h: variables, from piece to piece
//
//   one symbol -> embedding -> LSTM -> logits / temperature -> a draw --+
//        ^                                                              |
//        +------------------- until it is the end ----------------------+
#pragma once

#include "apps/fortunes/text.h"
#include "graph/builder/rnn_cell.h"
#include "graph/builder/scope.h"
#include "graph/builder/variable_scope.h"

namespace tagflow::fortunes {

struct ModelOptions {
  int64_t units = 128;
  int64_t embedding = 32;
};

// Who has the variables makes what uses them, in any order. Thread-compatible,
// as the graph.
class Model {
 public:
  Model(graph::VariableScope vars, const ModelOptions& options)
      : vars_(vars.with_reuse(graph::Reuse::kAuto)), options_(options) {}

  struct Loss {
    graph::Output loss;    // the mean of -log p of all symbols but the first
    graph::Outputs state;  // after them
  };
  // Of symbols, int32 [n, size + 1]. `state`: what was before; empty, zeros.
  Loss loss(const graph::Scope& s, const graph::Output& symbols,
            const graph::Outputs& state = {}) const;

  // The state of `streams` streams, as variables that begin as zeros, and are
  // in no training.
  std::vector<graph::ScopedVariable> stream_state(const graph::Scope& s,
                                                  int64_t streams) const;

  // `count` texts, drawn by a loop that goes on until each has said its end, or
  // has `longest` symbols: int32 [steps, count], kEnd after each. A temperature
  // below 1 takes likely symbols more often than they are: a float scalar, more
  // than 0. REQUIRES: count and longest >= 1
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
