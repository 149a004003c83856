// Recurrent networks over time, as loops: one body, however long the inputs.
//
//   const RnnResult r = dynamic_rnn(s, vars, *lstm_cell({.units = 64}), x,
//                                   {.sequence_length = lengths});
//   r.outputs   // [batch, time, 64], zeros past the end of a sequence
//   r.state     // c and h after the last element of each
//
// The variables of a cell are "rnn/lstm_cell/kernel" and so on. All are
// outside of the loop; see rnn_cell.h. Thread-compatible, as the graph.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/builder/rnn_cell.h"
#include "graph/builder/tensor_array.h"

namespace tagflow::graph {

struct RnnOptions {
  // An int32 or int64 vector of [batch]. Left out: all are as long as the
  // inputs, which longer ones count as, too.
  Input sequence_length = {};
  // As RnnCell::state() of the cell. Empty: zeros.
  Outputs initial_state = {};
  // Inputs and outputs are [time, batch, size], which saves two transpositions,
  // instead of [batch, time, size].
  bool time_major = false;
  int64_t parallel_iterations = 32;
  // The variable scope below that of the caller.
  std::string scope = "rnn";
};

struct RnnResult {
  // What the cell puts out, at the place of its input.
  Output outputs;
  // Of each sequence after its last element.
  Outputs state;
};

// Runs the cell over inputs of three dimensions, of which the last must be
// known: it is the size of the cell's input. InvalidArgument, of the scope, or
// of the run for what is known only there, where shapes or types do not fit.
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
  // Outputs are at the places of their inputs; the state is that after the
  // first element.
  RnnResult backward;
};
// One cell from the first element to the last, another one from the last to the
// first of each sequence.
BidirectionalResult bidirectional_dynamic_rnn(
    const Scope& s, const VariableScope& vars, const RnnCell& forward,
    const RnnCell& backward, const Output& inputs,
    const BidirectionalOptions& options = {});

// What a function gives raw_rnn() to go on with.
struct RawRnnNext {
  Output finished;  // a bool vector of [batch]: sequences that are over
  Output input;     // [batch, size], size known
  Outputs state;    // as the cell has it
  // What is collected of this moment; of the first call, which is before all
  // moments, an example of one sequence's, whose types and shapes count. Empty:
  // what the cell puts out.
  Outputs emit;
  Outputs loop_state;  // more variables of the loop, of fixed shapes
};
// What the cell did at moment time - 1.
struct RawRnnNow {
  Output output;
  Outputs state;
  Outputs loop_state;
};
// `time` is an int32 scalar. `now` is null in the first call, with time 0,
// which is outside of the loop and begins it.
using RawRnnFn = std::function<RawRnnNext(const Scope&, const Output& time,
                                          const RawRnnNow* now)>;

struct RawRnnResult {
  // What was emitted of all moments, [batch, ...] each; zeros past the end of a
  // sequence.
  std::vector<TensorArray> emitted;
  Outputs state;
  Outputs loop_state;
};
// Runs the cell until all sequences are finished, over inputs that the function
// makes as it goes, of what the cell put out if it likes. The state of a
// sequence stays what it is once that is finished. Of RnnOptions it knows
// parallel_iterations and scope.
RawRnnResult raw_rnn(const Scope& s, const VariableScope& vars,
                     const RnnCell& cell, const RawRnnFn& fn,
                     const RnnOptions& options = {});

}  // namespace tagflow::graph
