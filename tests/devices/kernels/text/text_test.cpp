// Regular expressions and hashes, compared with TensorFlow's results and
// errors.
#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

Tensor text(const char* value) { return Tensor::scalar(value); }

}  // namespace

TEST_CASE("expressions and hashes of strings are those of TensorFlow") {
  const RecordedCounts counts = check_recorded_cases("text.txt");
  CHECK(counts.ops.size() == 7);
  CHECK(counts.refused > 10);
}

TEST_CASE("an invalid pattern is refused, of an attribute with the node") {
  expect_error(run_op("RegexReplace", {text("a"), text("("), text("")}),
               kInvalid, "the pattern \"(\" is invalid: missing )");
  expect_error(run_op("StaticRegexFullMatch", {text("a")},
                      {{"pattern", std::string("[")}}),
               kInvalid, "is invalid: missing ]");
  expect_error(run_op("RegexFullMatch",
                      {text("a"), Tensor::make(DataType::kString, {1})}),
               kInvalid, "pattern must be a scalar");
  expect_error(run_op("RegexReplace", {text("a"), text("a"),
                                       Tensor::make(DataType::kString, {0})}),
               kInvalid, "rewrite must be a scalar");
}

TEST_CASE("an error quotes the beginning of a long pattern") {
  std::string pattern = "(";
  for (int i = 0; i < 1000; ++i) pattern += " \u00e4";
  const Status status =
      run_op("RegexFullMatch", {text("a"), Tensor::scalar(pattern)}).status();
  expect_error(status, kInvalid, "the pattern \"( \u00e4");
  expect_error(status, kInvalid, "\u00e4...\" is invalid: missing )");
  CHECK(status.message().size() < 400);
}

TEST_CASE("a pattern that would take too much memory is refused") {
  expect_error(
      run_op("RegexFullMatch", {text("a"), text("((a{1,100}){1,100}){1,100}")}),
      kInvalid, "is invalid");
}

TEST_CASE("a strong hash wants a key of two numbers") {
  expect_error(
      run_op("StringToHashBucketStrong", {text("a")},
             {{"num_buckets", int64_t{3}}, {"key", std::vector<int64_t>{1}}}),
      kInvalid, "key has 1 elements, not 2");
}

}  // namespace tagflow::devices
