// Cells of recurrent networks: the computation of one step, from an input of
// [batch, inputs] and a state. rnn.h runs them over time.
//
//   const RnnCellPtr cell = multi_rnn_cell(
//       {lstm_cell({.units = 64}), gru_cell({.units = 32})});
//
// Names, shapes and the order of gates are those of TensorFlow 1's cells of the
// same names, so checkpoints are compatible.
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
  bool is_memory = false;  // not subject to dropout: "c" of an LSTM
};

struct CellStep {
  Output output;  // [batch, outputs]
  Outputs state;
};
// Computes one step in the given scope. The new state has as many tensors as
// the old one.
using CellFn = std::function<CellStep(const Scope&, const Output& input,
                                      const Outputs& state)>;

// A cell; subclasses can be user-defined. Immutable; thread-safe.
class RnnCell {
 public:
  virtual ~RnnCell() = default;
  virtual std::vector<StatePart> state() const = 0;
  virtual int64_t output_size() const = 0;
  // Gets the variables, in a scope of `vars` named after the cell, and reads
  // them in `s`: outside of the loop, so that all steps use one version. On an
  // error `s` fails, and the function returns invalid outputs. REQUIRES:
  // input_size >= 0
  virtual CellFn build(const Scope& s, const VariableScope& vars,
                       int64_t input_size, DataType dtype) const = 0;
  // Zeros for all parts; `batch` is an int32 scalar.
  Outputs zero_state(const Scope& s, const Input& batch, DataType dtype) const;
};
using RnnCellPtr = std::shared_ptr<const RnnCell>;

// A function of one tensor; null: tanh.
using ActivationFn = std::function<Output(const Scope&, const Output&)>;

struct RnnCellOptions {
  int64_t units = 0;  // positive, else build() fails
  ActivationFn activation = {};
  // If omitted, that of the variable scope. Biases are initially 0, those of
  // the gates of a GRU 1.
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
  double projection_clip = 0;  // > 0: bound of the projected values
};
// i, j, f, o = [x, h] kernel + bias; c = sigmoid(f) c + sigmoid(i) tanh(j);
// h = sigmoid(o) tanh(c). The state is c, h.
RnnCellPtr lstm_cell(LstmCellOptions options);

// Each cell's input is the previous one's output; part names start with
// "cell_0.".
RnnCellPtr multi_rnn_cell(std::vector<RnnCellPtr> cells);

// Probabilities of keeping a value; dropped values are 0, and kept ones are
// divided by the probability. float scalars above 0, at most 1, as literals or
// fed tensors.
struct DropoutOptions {
  Input input_keep = 1.0;
  Input output_keep = 1.0;
  Input state_keep = 1.0;
  // Drops the same values of all rows in all steps, instead of others in each
  // step.
  bool variational = false;
  ops::Seeds seeds = {};
};
RnnCellPtr dropout_cell(RnnCellPtr cell, DropoutOptions options);

}  // namespace tagflow::graph
