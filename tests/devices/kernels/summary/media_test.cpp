// Histograms, pictures, sounds and tensors as messages.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

TEST_CASE("summaries are those of TensorFlow, byte by byte") {
  const RecordedCounts counts = check_recorded_cases("summary.txt");
  CHECK(counts.ops == std::set<std::string>{
                          "AudioSummaryV2", "HistogramSummary", "ImageSummary",
                          "ScalarSummary", "TensorSummary", "TensorSummaryV2"});
  CHECK(counts.refused >= 15);
}

TEST_CASE("errors of summaries say what is wrong") {
  const Tensor tag = Tensor::scalar("t");
  expect_error(
      run_op("HistogramSummary", {tag, Tensor::vector<float>({1, NAN})}),
      Code::kInvalidArgument,
      "[HistogramSummary] NaN at element 1: a histogram has finite values "
      "only");
  expect_error(run_op("ImageSummary",
                      {tag, Tensor::make(DataType::kUInt8, {1, 1, 1, 2})}),
               Code::kInvalidArgument,
               "pictures have 1, 3 or 4 channels, not 2");
  expect_error(run_op("ImageSummary",
                      {tag, Tensor::make(DataType::kUInt8, {1, 1, 1, 3})},
                      {{"bad_color", Tensor::vector<uint8_t>({1, 2})}}),
               Code::kInvalidArgument,
               "bad_color must be a vector of at least 3 uint8, not uint8[2]");
  expect_error(
      run_op("AudioSummary", {tag, Tensor::make(DataType::kFloat, {1, 1})},
             {{"sample_rate", 0.0F}}),
      Code::kInvalidArgument,
      "the rate must be more than 0 and less than 2^32, not 0");
}

TEST_CASE("a value at the end of all numbers is in the last bucket") {
  const auto highest = run_op(
      "HistogramSummary", {Tensor::scalar("t"),
                           Tensor::scalar(std::numeric_limits<double>::max())});
  CHECK(highest.ok());
}

TEST_CASE("the first version of a sound's op has its rate as an attribute") {
  const Tensor tag = Tensor::scalar("t");
  const Tensor sound = Tensor::of<float>({1, 2}, {0.5F, -1});
  const auto second =
      run_op("AudioSummaryV2", {tag, sound, Tensor::scalar(8000.0F)});
  REQUIRE(second.ok());
  expect_close(run_op("AudioSummary", {tag, sound}, {{"sample_rate", 8000.0F}}),
               second->at(0));
}

}  // namespace tagflow::devices
