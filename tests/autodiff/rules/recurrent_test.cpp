// Fused recurrent cells, which know no doubles. Their gradient ops have no
// gradients.
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

// x, h_prev, w_ru, w_c, b_ru, b_c.
std::vector<Tensor> gru_inputs() {
  return {values({kBatch, kInputs}),
          values({kBatch, kCells}),
          values({kInputs + kCells, 2 * kCells}),
          values({kInputs + kCells, kCells}),
          values({2 * kCells}),
          values({kCells})};
}

// Cells and outputs.
Function lstm(std::string op, AttrMap attrs) {
  return of_floats([=](const Scope& s, const Outputs& x) {
    graph::Inputs inputs;
    if (op != "LSTMBlockCell") inputs.add(Tensor::scalar<int64_t>(kSteps - 1));
    const graph::OpResult y = s.op(op, inputs.add(x), attrs);
    return Outputs{y[1], y[6]};
  });
}

}  // namespace

TEST_CASE("LSTMBlockCell has gradients") {
  for (bool peephole : {false, true})
    check_gradients(lstm("LSTMBlockCell", {{"use_peephole", peephole}}),
                    lstm_inputs({kBatch, kInputs}), float_options(1));
}

TEST_CASE("BlockLSTM and BlockLSTMV2 have gradients") {
  for (const char* op : {"BlockLSTM", "BlockLSTMV2"})
    for (bool peephole : {false, true})
      check_gradients(lstm(op, {{"use_peephole", peephole}}),
                      lstm_inputs({kSteps, kBatch, kInputs}), float_options(1));
}

TEST_CASE("GRUBlockCell has gradients") {
  const Function f = of_floats([](const Scope& s, const Outputs& x) {
    return Outputs(s.op("GRUBlockCell", x)[3]);
  });
  check_gradients(f, gru_inputs(), float_options(1));
}

TEST_CASE("gates and activations inside cells have tangents") {
  const auto all = [](const char* op, int outputs) {
    return of_floats([=](const Scope& s, const Outputs& x) {
      graph::Inputs inputs;
      if (std::string(op).starts_with("Block"))
        inputs.add(Tensor::scalar<int64_t>(kSteps));
      const graph::OpResult y = s.op(op, inputs.add(x));
      Outputs results;
      for (int port = 0; port < outputs; ++port) results.push_back(y[port]);
      return results;
    });
  };
  check_gradients(all("LSTMBlockCell", 7), lstm_inputs({kBatch, kInputs}),
                  float_options(0));
  for (const char* op : {"BlockLSTM", "BlockLSTMV2"})
    check_gradients(all(op, 7), lstm_inputs({kSteps, kBatch, kInputs}),
                    float_options(0));
  check_gradients(all("GRUBlockCell", 4), gru_inputs(), float_options(0));
}

TEST_CASE("an error says which gradients fused cells do not have") {
  const Function f = of_floats([](const Scope& s, const Outputs& x) {
    return Outputs(s.op("LSTMBlockCell", x)[0]);
  });
  const std::vector<Tensor> xs = lstm_inputs({kBatch, kInputs});
  const Status of_gate = wrong_gradients(f, xs, float_options(1)).status();
  CHECK(of_gate.to_string().find("output 0 is a gate") != std::string::npos);
  const Status second =
      wrong_gradients(lstm("LSTMBlockCell", {}), xs, float_options(2)).status();
  CHECK(second.to_string().find("LSTMBlockCellGrad") != std::string::npos);
}
