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

// Forward mode needs the gradients of the gradient ops.
CheckOptions reverse_options() {
  CheckOptions options = float_options(1);
  options.forward = false;
  return options;
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
                    lstm_inputs({kBatch, kInputs}), reverse_options());
}

TEST_CASE("BlockLSTM and BlockLSTMV2 have gradients") {
  for (const char* op : {"BlockLSTM", "BlockLSTMV2"})
    for (bool peephole : {false, true})
      check_gradients(lstm(op, {{"use_peephole", peephole}}),
                      lstm_inputs({kSteps, kBatch, kInputs}),
                      reverse_options());
}

TEST_CASE("GRUBlockCell has gradients") {
  const Function f = of_floats([](const Scope& s, const Outputs& x) {
    return Outputs(s.op("GRUBlockCell", x)[3]);
  });
  check_gradients(f,
                  {values({kBatch, kInputs}), values({kBatch, kCells}),
                   values({kInputs + kCells, 2 * kCells}),
                   values({kInputs + kCells, kCells}), values({2 * kCells}),
                   values({kCells})},
                  reverse_options());
}

TEST_CASE("an error says which gradients fused cells do not have") {
  const Function f = of_floats([](const Scope& s, const Outputs& x) {
    return Outputs(s.op("LSTMBlockCell", x)[0]);
  });
  const std::vector<Tensor> xs = lstm_inputs({kBatch, kInputs});
  const Status of_gate = wrong_gradients(f, xs, reverse_options()).status();
  CHECK(of_gate.to_string().find("output 0 is a gate") != std::string::npos);
  const Status second =
      wrong_gradients(lstm("LSTMBlockCell", {}), xs, float_options(2)).status();
  CHECK(second.to_string().find("LSTMBlockCellGrad") != std::string::npos);
  const Status forward =
      wrong_gradients(lstm("LSTMBlockCell", {}), xs, float_options(1)).status();
  CHECK(forward.to_string().find("LSTMBlockCellGrad") != std::string::npos);
}
