// The loss and the decoders of sequences without alignment.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/tracking_allocator.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/one_step.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

// Logits of one row of the batch.
Tensor logits(int64_t classes, std::initializer_list<double> values) {
  const int64_t steps = int64_t(values.size()) / classes;
  return Tensor::of<double>({steps, 1, classes}, values);
}

Tensor lengths(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

Result<Outputs> loss_of(const Tensor& inputs, std::vector<int64_t> indices,
                        std::vector<int32_t> labels, const Tensor& length,
                        AttrMap attrs = {}, const char* op = "CTCLoss") {
  const int64_t count = int64_t(labels.size());
  return run_op(op,
                {inputs, Tensor::of<int64_t>({count, 2}, indices),
                 Tensor::of<int32_t>({count}, labels), length},
                std::move(attrs));
}

}  // namespace

TEST_CASE("CTC losses and decoders compute what TensorFlow's do") {
  const RecordedCounts counts = check_recorded_cases("ctc.txt", 2e-5);
  CHECK(counts.ops.size() == 3);
  CHECK(counts.refused > 10);
}

TEST_CASE("the CTC loss sums over all ways to say the labels") {
  // Two steps of equal shares of a label and a blank: "a-", "-a" and "aa".
  const auto even = loss_of(logits(2, {0, 0, 0, 0}), {0, 0}, {0}, lengths({2}));
  expect_close(even, Tensor::vector<double>({-std::log(0.75)}), 1e-12);
  // Without merging, "aa" is two labels.
  expect_close(loss_of(logits(2, {0, 0, 0, 0}), {0, 0}, {0}, lengths({2}),
                       {{"ctc_merge_repeated", false}}),
               Tensor::vector<double>({-std::log(0.5)}), 1e-12);
  // Two equal labels need a blank in between.
  const auto blocked =
      loss_of(logits(2, {0, 0, 0, 0}), {0, 0, 0, 1}, {0, 0}, lengths({2}));
  REQUIRE(blocked.ok());
  CHECK(std::isinf((*blocked)[0].data<double>()[0]));
  expect_close((*blocked)[1], logits(2, {0.5, 0.5, 0.5, 0.5}), 1e-12);
  // Labels that are blanks only are none.
  expect_close(loss_of(logits(2, {0, 0}), {0, 0}, {1}, lengths({1})),
               Tensor::vector<double>({-std::log(0.5)}), 1e-12);
}

TEST_CASE("the blank of CTCLossV2 is class 0") {
  const Tensor first = Tensor::of<float>({2, 1, 3}, {1, 2, 3, -1, 0, 2});
  const Tensor last = Tensor::of<float>({2, 1, 3}, {2, 3, 1, 0, 2, -1});
  const auto moved = loss_of(first, {0, 0}, {2}, lengths({2}), {}, "CTCLossV2");
  const auto plain = loss_of(last, {0, 0}, {1}, lengths({2}));
  REQUIRE(moved.ok());
  REQUIRE(plain.ok());
  expect_close((*moved)[0], (*plain)[0]);
  const float* const a = (*moved)[1].data<float>();
  const float* const b = (*plain)[1].data<float>();
  for (int t = 0; t < 2; ++t) {
    CHECK(a[3 * t] == doctest::Approx(b[3 * t + 2]));
    CHECK(a[3 * t + 1] == doctest::Approx(b[3 * t]));
  }
  expect_error(loss_of(first, {0, 0}, {0}, lengths({2}), {}, "CTCLossV2"),
               kInvalid, "row 0 of the batch has label 0, outside [1, 3)");
}

TEST_CASE("the CTC loss refuses labels that do not fit") {
  const Tensor two = logits(2, {0, 0, 0, 0});
  expect_error(loss_of(two, {}, {}, lengths({2})), kInvalid,
               "row 0 of the batch has no labels");
  expect_error(loss_of(two, {1, 0}, {0}, lengths({2})), kInvalid,
               "labels_indices[0] = [1, 0] is in none of the 1 rows");
  expect_error(loss_of(two, {0, 1, 0, 0}, {0, 0}, lengths({2})), kInvalid,
               "labels_indices[1] = [0, 0] is not after [0, 1]");
  expect_error(loss_of(two, {0, 0}, {-1}, lengths({2})), kInvalid,
               "has label -1, outside [0, 1)");
  expect_error(loss_of(two, {0, 0, 0, 1}, {1, 0}, lengths({2})), kInvalid,
               "row 0 of the batch has labels after a blank, which is 1");
  expect_error(loss_of(two, {0, 0, 0, 1}, {0, 0}, lengths({1})), kInvalid,
               "row 0 of the batch has 2 labels, but 1 steps");
  expect_error(loss_of(two, {0, 0}, {0}, lengths({3})), kInvalid,
               "sequence_length[0] = 3 is outside [0, 2]");
  expect_error(loss_of(two, {0, 0}, {0}, lengths({2, 2})), kInvalid,
               "sequence_length has 2 elements for a batch of 1");
  const auto left_out = loss_of(two, {0, 0, 0, 1}, {0, 0}, lengths({1}),
                                {{"ignore_longer_outputs_than_inputs", true}});
  expect_close(left_out, Tensor::vector<double>({0}));
}

TEST_CASE("a wide beam finds the labels that are likeliest in all ways") {
  // The likeliest classes are blanks, but "a" can be said in three ways.
  const Tensor steps = logits(2, {std::log(0.4), std::log(0.6),  //
                                  std::log(0.4), std::log(0.6)});
  const auto greedy = run_op("CTCGreedyDecoder", {steps, lengths({2})});
  REQUIRE(greedy.ok());
  CHECK((*greedy)[1].num_elements() == 0);
  const auto wide = run_op("CTCBeamSearchDecoder", {steps, lengths({2})},
                           {{"beam_width", 10}, {"top_paths", 2}});
  REQUIRE(wide.ok());
  expect_close((*wide)[2], Tensor::vector<int64_t>({0}));
  expect_close((*wide)[6],
               Tensor::of<double>({1, 2}, {std::log(0.64), std::log(0.36)}),
               1e-12);
}

TEST_CASE("the beam counts in the memory that it is given") {
  const auto memory = TrackingAllocator::make({"here", 1 << 20});
  const auto decode = [&](int64_t steps, int64_t width) {
    Tensor zeros = Tensor::make(DataType::kFloat, {steps, 1, 8});
    std::fill_n(zeros.mutable_data<float>(), zeros.num_elements(), 0.0f);
    std::vector<Tensor> inputs{zeros, lengths({int32_t(steps)})};
    return run_unshared("CTCBeamSearchDecoder", inputs,
                        {{"beam_width", width}, {"top_paths", 1}}, *memory);
  };
  const auto narrow = decode(40, 8);
  CHECK_MESSAGE(narrow.ok(), narrow.status().to_string());
  CHECK(decode(3, int64_t(1) << 62).ok());
  expect_error(decode(40, int64_t(1) << 62), Code::kResourceExhausted,
               "[CTCBeamSearchDecoder] out of memory: the beam needs");
}

TEST_CASE("decoders refuse what does not fit") {
  const Tensor steps = logits(2, {0, 0, 0, 0});
  expect_error(
      run_op("CTCGreedyDecoder", {steps, lengths({2})}, {{"blank_index", 2}}),
      kInvalid, "blank_index 2 is outside [-2, 2)");
  expect_error(run_op("CTCGreedyDecoder", {steps, lengths({1, 1})}),
               Code::kFailedPrecondition,
               "sequence_length has 2 elements for a batch of 1");
  expect_error(run_op("CTCBeamSearchDecoder", {steps, lengths({2})},
                      {{"beam_width", 1}, {"top_paths", 2}}),
               kInvalid, "2 paths are more than a beam of width 1 has");
  expect_error(run_op("CTCBeamSearchDecoder", {steps, lengths({0})},
                      {{"beam_width", 3}, {"top_paths", 2}}),
               kInvalid, "row 0 of the batch has 1 paths, not 2");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error(run_op("CTCBeamSearchDecoder",
                      {logits(2, {nan, 0, 0, nan}), lengths({2})},
                      {{"beam_width", 3}, {"top_paths", 1}}),
               kInvalid, "row 0 of the batch has 0 paths, not 1");
}

}  // namespace tagflow::devices
