// What the LSTM kernels and their gradients share.
#pragma once

#include "devices/kernels/recurrent/args.h"

namespace tagflow::devices {

// The gates' order in a row of 4 * cells; it differs between ops.
struct GateOrder {
  int64_t input = 0, candidate = 1, forget = 2, output = 3;
};

// The form of a node: LSTMBlockCell, BlockLSTM, BlockLSTMV2 or a gradient.
struct LstmForm {
  bool has_time = false;  // works on a sequence, not on one step
  bool has_peephole = false;
  float forget_bias = 0;
  float cell_clip = 0;  // no clipping unless positive
  GateOrder order;

  static LstmForm of(const KernelInfo& info);
  // The first input after the length of the sequence.
  int first_input() const { return has_time ? 1 : 0; }
};

// Sizes and inputs that forward and backward start with, as floats.
struct LstmInputs {
  int64_t steps = 1;   // in the sequence
  int64_t length = 1;  // the computed part of the steps
  int64_t batch = 0, inputs = 0, cells = 0;
  const float *x, *cs_prev, *h_prev, *w;
  const float *wci, *wcf, *wco, *b;

  // The weights of the last outputs; they follow those of x.
  const float* recurrent_w() const { return w + inputs * 4 * cells; }
};

// Inputs from first_input() on, checked.
Result<LstmInputs> lstm_inputs(KernelContext& context, const LstmForm& form,
                               FloatTensors& floats);

// Nanoseconds of all steps, from the inputs alone.
double lstm_cost(const KernelContext& context, const LstmForm& form);

}  // namespace tagflow::devices
