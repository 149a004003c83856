// Bytes as TensorFlow 2.21 writes them.
#include <doctest/doctest.h>

#include <string>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

using std::string_literals::operator""s;

const std::string kTwo =
    "\n\x08\n\x01"
    "a\x15\x00\x00\xc0?\n\x09\n\x02"
    "bc\x15\x00\x00\x00\x00"s;
const std::string kSeven =
    "\n\x08\n\x01"
    "d\x15\x00\x00\xe0@"s;
// Field 5, which a histogram is in.
const std::string kHistogram =
    "\n\x07\n\x01"
    "h*\x02\x08\x01"s;

}  // namespace

TEST_CASE("numbers become summaries with tags") {
  expect_close(
      run_op("ScalarSummary", {Tensor::vector<std::string>({"a", "bc"}),
                               Tensor::vector<float>({1.5F, 0})}),
      Tensor::scalar(kTwo));
  expect_close(
      run_op("ScalarSummary", {Tensor::scalar("d"), Tensor::scalar(7)}),
      Tensor::scalar(kSeven));
  expect_error(run_op("ScalarSummary",
                      {Tensor::scalar("d"), Tensor::vector<float>({1, 2})}),
               Code::kInvalidArgument,
               "tags of shape [] for values of shape [2]");
}

TEST_CASE("summaries are merged, whatever their values are") {
  expect_close(
      run_op("MergeSummary", {Tensor::scalar(kTwo), Tensor::scalar(kHistogram),
                              Tensor::scalar(kSeven)}),
      Tensor::scalar(kTwo + kHistogram + kSeven));
  expect_error(
      run_op("MergeSummary", {Tensor::scalar(kTwo), Tensor::scalar(kTwo)}),
      Code::kInvalidArgument, "two values have the tag \"a\"");
  expect_error(run_op("MergeSummary", {Tensor::scalar("\xff")}),
               Code::kInvalidArgument,
               "input 0 has 1 bytes that are not a summary");
}

}  // namespace tagflow::devices
