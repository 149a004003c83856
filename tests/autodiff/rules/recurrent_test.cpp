// Fused recurrent cells, which have no kernels for doubles.
#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/autodiff/rules/floats.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
using graph::Outputs;
using graph::Scope;

namespace {

constexpr int64_t kBatch = 2, kInputs = 3, kCells = 2, kSteps = 3;

// x (of all steps or of one), cs_prev, h_prev, w, wci, wcf, wco, b.
std::vector<Tensor> lstm_inputs(const Dims& x) {
  return {values(x),
          values({kBatch, kCells}),
          values({kBatch, kCells}),
          values({kInputs + kCells, 4 * kCells}),
          values({kCells}),
          values({kCells}),
          values({kCells}),
          values({4 * kCells})};
}

// These outputs of all: cells and outputs alone have gradients by a fused op.
Function lstm(std::string op, AttrMap attrs, std::vector<int> ports = {1, 6}) {
  return of_floats([=](const Scope& s, const Outputs& x) {
    graph::Inputs inputs;
    if (op != "LSTMBlockCell") inputs.add(Tensor::scalar<int64_t>(kSteps - 1));
    const graph::OpResult all = s.op(op, inputs.add(x), attrs);
    Outputs y;
    for (const int port : ports) y.push_back(all[port]);
    return y;
  });
}

const std::vector<int> kAllPorts = {0, 1, 2, 3, 4, 5, 6};

std::vector<Tensor> gru_inputs() {
  return {values({kBatch, kInputs}),
          values({kBatch, kCells}),
          values({kInputs + kCells, 2 * kCells}),
          values({kInputs + kCells, kCells}),
          values({2 * kCells}),
          values({kCells})};
}

Function gru(std::vector<int> ports) {
  return of_floats([=](const Scope& s, const Outputs& x) {
    const graph::OpResult all = s.op("GRUBlockCell", x);
    Outputs y;
    for (const int port : ports) y.push_back(all[port]);
    return y;
  });
}

}  // namespace

TEST_CASE("LSTMBlockCell has gradients") {
  for (bool peephole : {false, true})
    check_gradients(lstm("LSTMBlockCell", {{"use_peephole", peephole}}),
                    lstm_inputs({kBatch, kInputs}), float_options());
}

TEST_CASE("BlockLSTM and BlockLSTMV2 have gradients") {
  for (const char* op : {"BlockLSTM", "BlockLSTMV2"})
    for (bool peephole : {false, true})
      check_gradients(lstm(op, {{"use_peephole", peephole}}),
                      lstm_inputs({kSteps, kBatch, kInputs}), float_options());
}

TEST_CASE("GRUBlockCell has gradients") {
  check_gradients(gru({3}), gru_inputs(), float_options());
}

TEST_CASE("the gates of fused cells have gradients") {
  check_gradients(gru({0, 1, 2, 3}), gru_inputs(), float_options());
  check_gradients(lstm("LSTMBlockCell", {{"use_peephole", true}}, kAllPorts),
                  lstm_inputs({kBatch, kInputs}), float_options());
  for (const char* op : {"BlockLSTM", "BlockLSTMV2"})
    check_gradients(lstm(op, {{"use_peephole", true}}, kAllPorts),
                    lstm_inputs({kSteps, kBatch, kInputs}), float_options(1));
}

TEST_CASE("fused cells in a loop have second gradients") {
  const Function f = of_floats([](const Scope& s, const Outputs& x) {
    return graph::while_loop(
        s,
        [](const Scope& in, const Outputs& v) {
          return graph::ops::less(in, v[0], 2);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const graph::OpResult y =
              in.op("GRUBlockCell", {x[0], v[1], x[2], x[3], x[4], x[5]});
          return {graph::ops::add(in, v[0], 1), y[3]};
        },
        {0, x[1]})[1];
  });
  CheckOptions options = float_options();
  options.unknown_shapes = false;
  check_gradients(f, gru_inputs(), options);
}

namespace {

// The losses of a batch of two rows, by the logits.
Function ctc_loss() {
  return [](const Scope& s, const Outputs& x) -> Outputs {
    const Tensor indices = Tensor::of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0});
    return {s.op("CTCLoss", {x[0], indices, Tensor::vector<int32_t>({0, 2, 1}),
                             Tensor::vector<int32_t>({4, 3})})[0]};
  };
}

}  // namespace

TEST_CASE("CTCLoss has a gradient, and no second one") {
  CheckOptions options;
  options.order = 1;
  check_gradients(ctc_loss(), {values({4, 2, 4})}, options);
  options.order = 2;
  const auto wrong = wrong_gradients(ctc_loss(), {values({4, 2, 4})}, options);
  REQUIRE(!wrong.ok());
  CHECK(wrong.status().message().find(
            "its second derivative is not defined, as in TensorFlow") !=
        std::string_view::npos);
}
