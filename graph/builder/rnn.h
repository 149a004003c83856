// Recurrent networks over time, as loops with one body for any length.
//
//   const RnnResult r = dynamic_rnn(s, vars, *lstm_cell({.units = 64}), x,
//                                   {.sequence_length = lengths});
//   r.outputs   // [batch, time, 64], zeros past the end of a sequence
//   r.state     // c and h after the last element of each
//
// The variables of a cell are "rnn/lstm_cell/kernel" and so on. All are outside
// of the loop; see rnn_cell.h. Thread-compatible together with the graph.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/builder/rnn_cell.h"
#include "graph/builder/tensor_array.h"

namespace tagflow::graph {

struct RnnOptions {
  // An int32 or int64 vector of [batch]. If omitted, all sequences have the
  // length of the inputs; larger lengths are reduced to it.
  Input sequence_length = {};
  // As in RnnCell::state() of the cell. Empty: zeros.
  Outputs initial_state = {};
  // Inputs and outputs are [time, batch, size], which saves two transpositions,
  // instead of [batch, time, size].
  bool time_major = false;
  int64_t parallel_iterations = 32;
  // The variable scope inside that of the caller.
  std::string scope = "rnn";
};

struct RnnResult {
  // The cell's outputs, at the positions of its inputs.
  Output outputs;
  // The state of each sequence after its last element.
  Outputs state;
};

// Runs the cell over inputs of three dimensions. The last one must be known: it
// is the size of the cell's input. If shapes or types do not match, the scope
// fails with InvalidArgument, or the run does if they are known only there.
RnnResult dynamic_rnn(const Scope& s, const VariableScope& vars,
                      const RnnCell& cell, const Output& inputs,
                      const RnnOptions& options = {});

// As RnnOptions; lengths must not be negative.
struct BidirectionalOptions {
  Input sequence_length = {};
  Outputs initial_state_forward = {}, initial_state_backward = {};
  bool time_major = false;
  int64_t parallel_iterations = 32;
  std::string scope = "bidirectional_rnn";  // with "fw" and "bw" in it
};
struct BidirectionalResult {
  RnnResult forward;
  // Outputs are at the positions of their inputs; the state is that after the
  // first element.
  RnnResult backward;
};
// Runs one cell forwards and another one backwards over each sequence.
BidirectionalResult bidirectional_dynamic_rnn(
    const Scope& s, const VariableScope& vars, const RnnCell& forward,
    const RnnCell& backward, const Output& inputs,
    const BidirectionalOptions& options = {});

// The next step of raw_rnn(), as returned by the function.
struct RawRnnNext {
  Output finished;  // a bool vector of [batch]: sequences that have ended
  Output input;     // [batch, size], size known
  Outputs state;    // in the cell's format
  // The values to collect for this step. The first call, before all steps,
  // returns an example for one sequence, for types and shapes. Empty: the
  // cell's outputs.
  Outputs emit;
  Outputs loop_state;  // additional loop variables, with fixed shapes
};
// The cell's results of step time - 1.
struct RawRnnNow {
  Output output;
  Outputs state;
  Outputs loop_state;
};
// `time` is an int32 scalar. `now` is null in the first call, with time 0,
// which is outside of the loop and starts it.
using RawRnnFn = std::function<RawRnnNext(const Scope&, const Output& time,
                                          const RawRnnNow* now)>;

struct RawRnnResult {
  // The values emitted in all steps, [batch, ...] each; zeros past the end of a
  // sequence.
  std::vector<TensorArray> emitted;
  Outputs state;
  Outputs loop_state;
};
// Runs the cell until all sequences have finished, over inputs that the
// function makes at each step, possibly from the cell's output. The state of a
// finished sequence does not change. Only the options parallel_iterations and
// scope of RnnOptions are used.
RawRnnResult raw_rnn(const Scope& s, const VariableScope& vars,
                     const RnnCell& cell, const RawRnnFn& fn,
                     const RnnOptions& options = {});

}  // namespace tagflow::graph
