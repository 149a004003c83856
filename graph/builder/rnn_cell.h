// Cells of recurrent networks: what is computed at one moment, from an input
// of [batch, inputs] and a state. rnn.h runs them over time.
//
//   const RnnCellPtr cell = multi_rnn_cell(
//       {lstm_cell({.units = 64}), gru_cell({.units = 32})});
//
// Names, shapes and the order of gates are those of TensorFlow 1's cells of the
// same names, so that their checkpoints fit.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/builder/variable_scope.h"

namespace tagflow::graph {

// One tensor of a state: [batch, size].
struct StatePart {
  std::string name;  // "h", "cell_1.c": for messages
  int64_t size = 0;
  bool is_memory = false;  // which dropout leaves alone: "c" of an LSTM
};

struct CellStep {
  Output output;  // [batch, outputs]
  Outputs state;
};
// One moment, in the scope that it is given. Of the state as many tensors come
// out as go in.
using CellFn = std::function<CellStep(const Scope&, const Output& input,
                                      const Outputs& state)>;

// Immutable; thread-safe. For cells of your own.
class RnnCell {
 public:
  virtual ~RnnCell() = default;
  virtual std::vector<StatePart> state() const = 0;
  virtual int64_t output_size() const = 0;
  // Gets the variables, below a scope of `vars` named after the cell, and reads
  // them in `s`: outside of the loop, so that all moments use one version. On
  // an error `s` fails, and the function returns invalid outputs. REQUIRES:
  // input_size >= 0
  virtual CellFn build(const Scope& s, const VariableScope& vars,
                       int64_t input_size, DataType dtype) const = 0;
  // Zeros for all parts; `batch` is an int32 scalar.
  Outputs zero_state(const Scope& s, const Input& batch, DataType dtype) const;
};
using RnnCellPtr = std::shared_ptr<const RnnCell>;

// Of one tensor; null: tanh.
using ActivationFn = std::function<Output(const Scope&, const Output&)>;

struct RnnCellOptions {
  int64_t units = 0;  // positive, else build() fails
  ActivationFn activation = {};
  // Left out: that of the variable scope. Biases begin as 0, those of the gates
  // of a GRU as 1.
  Initializer kernel_initializer = {};
  std::string name = {};  // of its variable scope; "": "gru_cell" and so on
};
// h = tanh([x, h] kernel + bias)
RnnCellPtr basic_rnn_cell(RnnCellOptions options);
// r, u = sigmoid([x, h] gates); c = tanh([x, r h] candidate);
// h = u h + (1 - u) c
RnnCellPtr gru_cell(RnnCellOptions options);

struct LstmCellOptions {
  int64_t units = 0;
  ActivationFn activation = {};
  Initializer kernel_initializer = {};
  std::string name = {};       // "": "lstm_cell"
  double forget_bias = 1;      // added to the gate f
  bool peepholes = false;      // gates see c
  double cell_clip = 0;        // > 0: c is kept within [-clip, clip]
  int64_t projection = 0;      // > 0: h = (o tanh(c)) projection, of that size
  double projection_clip = 0;  // > 0: of what is projected
};
// i, j, f, o = [x, h] kernel + bias; c = sigmoid(f) c + sigmoid(i) tanh(j);
// h = sigmoid(o) tanh(c). The state is c, h.
RnnCellPtr lstm_cell(LstmCellOptions options);

// Each takes what the one before gives; names of parts begin with "cell_0.".
RnnCellPtr multi_rnn_cell(std::vector<RnnCellPtr> cells);

// Probabilities with which a value is kept; others are 0, and what is kept is
// divided by it. float scalars above 0, at most 1, as a literal or to be fed.
struct DropoutOptions {
  Input input_keep = 1.0;
  Input output_keep = 1.0;
  Input state_keep = 1.0;
  // The same values of all rows are dropped at all moments, instead of others
  // at each.
  bool variational = false;
  ops::Seeds seeds = {};
};
RnnCellPtr dropout_cell(RnnCellPtr cell, DropoutOptions options);

}  // namespace tagflow::graph
