// Fused recurrent cells, compared with TensorFlow's results.
#include <doctest/doctest.h>

#include "graph/float16.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;
constexpr int64_t kSteps = 3, kBatch = 2, kInputs = 2, kCells = 3;

// Numbers between -0.5 and 0.5 that differ.
Tensor numbers(const Shape& shape, DataType dtype = DataType::kFloat) {
  Tensor tensor = Tensor::make(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const float value = float((i * 7 + 3) % 16) / 16 - 0.5f;
    if (dtype == DataType::kFloat) tensor.mutable_data<float>()[i] = value;
    if (dtype == DataType::kHalf) tensor.mutable_data<Half>()[i] = Half(value);
  }
  return tensor;
}

// Of BlockLSTM.
std::vector<Tensor> lstm_inputs(int64_t length,
                                DataType dtype = DataType::kFloat) {
  const Shape state{kBatch, kCells}, peephole{kCells};
  return {Tensor::scalar(length),
          numbers({kSteps, kBatch, kInputs}, dtype),
          numbers(state, dtype),
          numbers(state, dtype),
          numbers({kInputs + kCells, 4 * kCells}, dtype),
          numbers(peephole, dtype),
          numbers(peephole, dtype),
          numbers(peephole, dtype),
          numbers({4 * kCells}, dtype)};
}

Outputs run_lstm(const std::vector<Tensor>& inputs, bool peephole = false) {
  auto outputs = run_op("BlockLSTM", inputs, {{"use_peephole", peephole}});
  REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
  return std::move(*outputs);
}

}  // namespace

TEST_CASE("recurrent cells and their gradients compute what TensorFlow's do") {
  const RecordedCounts counts = check_recorded_cases("recurrent.txt", 2e-5);
  CHECK(counts.ops.size() == 8);
}

// As in TensorFlow, whose other recurrent ops take it.
TEST_CASE("LSTMBlockCell refuses an empty state") {
  const auto run = [](int64_t batch, int64_t cells) {
    const Tensor state = numbers({batch, cells}), peephole = numbers({cells});
    return run_op("LSTMBlockCell",
                  {numbers({batch, kInputs}), state, state,
                   numbers({kInputs + cells, 4 * cells}), peephole, peephole,
                   peephole, numbers({4 * cells})});
  };
  CHECK(run(kBatch, kCells).ok());
  expect_error(run(0, kCells), kInvalid, "cs_prev is empty: 0 rows");
  expect_error(run(kBatch, 0), kInvalid, "cs_prev is empty: 2 rows of 0 cells");
}

TEST_CASE("steps behind the length of a sequence are 0, and have no gradient") {
  const Outputs whole = run_lstm(lstm_inputs(kSteps));
  const Outputs part = run_lstm(lstm_inputs(1));
  const int64_t step = kBatch * kCells;
  for (size_t n = 0; n < 7; ++n)
    for (int64_t i = 0; i < kSteps * step; ++i)
      CHECK(part[n].data<float>()[i] ==
            (i < step ? whole[n].data<float>()[i] : 0));

  std::vector<Tensor> inputs = lstm_inputs(1);
  for (const Tensor& made : part) inputs.push_back(made);
  inputs.push_back(numbers({kSteps, kBatch, kCells}));
  inputs.push_back(numbers({kSteps, kBatch, kCells}));
  const auto grads = run_op("BlockLSTMGrad", inputs, {{"use_peephole", true}});
  REQUIRE_MESSAGE(grads.ok(), grads.status().to_string());
  const Tensor& of_x = (*grads)[0];
  CHECK(of_x.data<float>()[0] != 0);
  for (int64_t i = kBatch * kInputs; i < of_x.num_elements(); ++i)
    CHECK(of_x.data<float>()[i] == 0);
  inputs[0] = Tensor::scalar(int64_t{0});
  const auto none = run_op("BlockLSTMGrad", inputs, {{"use_peephole", true}});
  REQUIRE_MESSAGE(none.ok(), none.status().to_string());
  for (const Tensor& grad : *none)
    for (const float value : grad.flat<float>()) CHECK(value == 0);
}

TEST_CASE("recurrent cells compute half precision in float") {
  const Outputs wide = run_lstm(lstm_inputs(kSteps), true);
  const Outputs half = run_lstm(lstm_inputs(kSteps, DataType::kHalf), true);
  for (size_t n = 0; n < 7; ++n)
    for (int64_t i = 0; i < wide[n].num_elements(); ++i)
      CHECK(float(half[n].data<Half>()[i]) ==
            doctest::Approx(wide[n].data<float>()[i]).epsilon(2e-3));
}

TEST_CASE("recurrent cells take a batch, sequence or cell of size 0") {
  for (int dim = 0; dim < 2; ++dim) {
    std::vector<Tensor> inputs = lstm_inputs(0);
    const int64_t batch = dim == 1 ? 0 : kBatch;
    inputs[1] = numbers({dim == 0 ? 0 : kSteps, batch, kInputs});
    inputs[2] = inputs[3] = numbers({batch, kCells});
    run_lstm(inputs);
  }
  std::vector<Tensor> inputs = lstm_inputs(kSteps);
  inputs[2] = inputs[3] = numbers({kBatch, 0});
  inputs[4] = numbers({kInputs, 0});
  for (size_t i = 5; i < 9; ++i) inputs[i] = numbers({0});
  run_lstm(inputs);
}

TEST_CASE("sequences too long to be counted are empty, or refused") {
  const int64_t huge = int64_t{1} << 40;
  std::vector<Tensor> inputs = lstm_inputs(huge);
  inputs[1] = numbers({huge, huge, 0});
  inputs[2] = inputs[3] = numbers({huge, 0});
  inputs[4] = numbers({0, 0});
  for (size_t i = 5; i < 9; ++i) inputs[i] = numbers({0});
  run_lstm(inputs);
  inputs[1] = numbers({int64_t{1} << 62, 4, 0});
  inputs[2] = inputs[3] = numbers({4, 1});
  inputs[4] = numbers({1, 4});
  for (size_t i = 5; i < 8; ++i) inputs[i] = numbers({1});
  inputs[8] = numbers({4});
  expect_error(run_op("BlockLSTM", inputs), kInvalid, "");
}

TEST_CASE("recurrent inputs that do not fit are named") {
  const auto with = [](size_t i, Tensor other) {
    std::vector<Tensor> inputs = lstm_inputs(kSteps);
    inputs[i] = std::move(other);
    return run_op("BlockLSTM", inputs, {{"use_peephole", true}});
  };
  expect_error(with(0, Tensor::scalar(int64_t{4})), kInvalid,
               "seq_len_max 4 is outside of [0, 3]");
  expect_error(with(0, Tensor::scalar(int64_t{-1})), kInvalid,
               "seq_len_max -1 is outside of [0, 3]");
  expect_error(with(1, numbers({2, 2})), kInvalid, "x must be of rank 3");
  expect_error(with(2, numbers({kBatch, 2})), kInvalid, "cs_prev is");
  expect_error(with(3, numbers({1, kCells})), kInvalid, "h_prev is");
  expect_error(with(4, numbers({kCells, 4 * kCells})), kInvalid, "w is");
  expect_error(with(5, numbers({1})), kInvalid, "wci is");
  expect_error(with(8, numbers({13})), kInvalid, "4 equal parts");
  const Tensor state = numbers({2, 3});
  expect_error(
      run_op("GRUBlockCell", {numbers({2, 2}), state, numbers({5, 5}),
                              numbers({5, 3}), numbers({6}), numbers({3})}),
      kInvalid, "w_ru is");
  expect_error(
      run_op("GRUBlockCell", {numbers({2, 2}), numbers({3, 3}), numbers({5, 6}),
                              numbers({5, 3}), numbers({6}), numbers({3})}),
      kInvalid, "h_prev is");
}

}  // namespace tagflow::devices
