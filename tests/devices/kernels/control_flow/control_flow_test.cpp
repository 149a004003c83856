#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "devices/kernels/summarize.h"
#include "graph/float16.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/temp_path.h"

namespace tagflow::devices {

namespace {

const Tensor kMatrix = Tensor::of<int32_t>({2, 2}, {1, 2, 3, 4});

}  // namespace

TEST_CASE("a constant is its value") {
  expect_close(
      run_op("Const", {}, {{"value", kMatrix}, {"dtype", DataType::kInt32}}),
      kMatrix);
}

TEST_CASE("a constant of another type than it says is refused") {
  expect_error(
      run_op("Const", {}, {{"value", kMatrix}, {"dtype", DataType::kFloat}}),
      Code::kInvalidArgument, "the value is int32[2,2]");
}

TEST_CASE("identities pass on any type") {
  const Tensor text = Tensor::of<std::string>({1}, {"a"});
  for (const char* op :
       {"Identity", "StopGradient", "PreventGradient", "Snapshot"}) {
    expect_close(run_op(op, {kMatrix}), kMatrix);
    expect_close(run_op(op, {text}), text);
  }
  const auto both = run_op("IdentityN", {kMatrix, text});
  REQUIRE(both.ok());
  expect_close((*both)[0], kMatrix);
  expect_close((*both)[1], text);
}

TEST_CASE("a placeholder without a value names what is missing") {
  expect_error(
      run_op("Placeholder", {},
             {{"dtype", DataType::kFloat}, {"shape", PartialShape{2, -1}}}),
      Code::kInvalidArgument,
      "\"op\" was not fed: this run needs a value of type float and shape "
      "[2,?]");
}

TEST_CASE("a placeholder's default stands in for its value") {
  expect_close(run_op("PlaceholderWithDefault", {kMatrix},
                      {{"shape", PartialShape{-1, 2}}}),
               kMatrix);
}

TEST_CASE("a shape is ensured") {
  expect_close(
      run_op("EnsureShape", {kMatrix}, {{"shape", PartialShape{-1, 2}}}),
      kMatrix);
  expect_error(
      run_op("EnsureShape", {kMatrix}, {{"shape", PartialShape{-1, 3}}}),
      Code::kInvalidArgument, "the input has shape [2,2], which is not [?,3]");
}

TEST_CASE("an assertion that fails shows its data") {
  CHECK(run_op("Assert", {Tensor::scalar(true), kMatrix}).ok());
  const Tensor message = Tensor::scalar("x must be small:");
  expect_error(run_op("Assert", {Tensor::scalar(false), message, kMatrix}),
               Code::kInvalidArgument,
               "assertion failed: [x must be small:] [[1 2][3...]...]");
  expect_error(
      run_op("Assert", {Tensor::scalar(false), kMatrix}, {{"summarize", -1}}),
      Code::kInvalidArgument, "assertion failed: [[1 2][3 4]]");
  expect_error(run_op("Assert", {Tensor::vector<bool>({true}), kMatrix}),
               Code::kInvalidArgument,
               "the condition must be a scalar, not bool[1]");
}

TEST_CASE("printing passes its input on") {
  expect_close(
      run_op("Print", {kMatrix, Tensor::scalar("x")}, {{"first_n", 0}}),
      kMatrix);
}

TEST_CASE("a line is printed to a file") {
  const auto path = tagflow::testing::temp_path("print");
  const AttrMap attrs{{"output_stream", "file://" + path.string()},
                      {"end", "!"}};
  CHECK(run_op("PrintV2", {Tensor::scalar("one")}, attrs).ok());
  CHECK(run_op("PrintV2", {Tensor::scalar("two")}, attrs).ok());
  std::ifstream file(path);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "one!two!");
  std::filesystem::remove(path);
}

TEST_CASE("printing refuses unknown streams and vectors") {
  expect_error(
      run_op("PrintV2", {Tensor::scalar("a")}, {{"output_stream", "printer"}}),
      Code::kInvalidArgument, "output_stream is \"printer\"");
  expect_error(run_op("PrintV2", {Tensor::scalar("a")},
                      {{"output_stream", "file:///no/such/folder/x"}}),
               Code::kInvalidArgument, "cannot append to file");
  expect_error(run_op("PrintV2", {Tensor::of<std::string>({1}, {"a"})}),
               Code::kInvalidArgument, "must be a scalar, not string[1]");
}

TEST_CASE("aborting stops the step, not the process") {
  expect_error(run_op("Abort", {}, {{"error_msg", "enough"}}), Code::kAborted,
               "node \"op\" stops the step: enough");
  expect_error(run_op("Abort", {}, {{"exit_without_error", true}}),
               Code::kAborted, "no message");
}

TEST_CASE("CheckNumerics finds numbers that are not finite") {
  const Tensor good = Tensor::vector<float>({1, 2});
  const AttrMap attrs{{"message", "loss"}};
  expect_close(run_op("CheckNumerics", {good}, attrs), good);
  expect_error(
      run_op("CheckNumerics",
             {Tensor::vector<float>({1, INFINITY, NAN, -INFINITY})}, attrs),
      Code::kInvalidArgument,
      "loss: float[4] has 1 NaN, 1 +Inf and 1 -Inf, the first at element 1");
  expect_error(run_op("CheckNumericsV2", {Tensor::scalar(Half(NAN))}, attrs),
               Code::kInvalidArgument, "has 1 NaN");
}

TEST_CASE("Print and Assert show values as nested brackets") {
  CHECK(summarize(Tensor::scalar(7), 3) == "[7]");
  CHECK(summarize(Tensor::scalar(7), 0) == "[...]");
  CHECK(summarize(Tensor::vector<int32_t>({1, 2, 3}), 3) == "[1 2 3]");
  CHECK(summarize(Tensor::vector<float>({1, 2.5f, 3e20f}), 2) == "[1 2.5...]");
  CHECK(summarize(kMatrix, 3) == "[[1 2][3...]...]");
  CHECK(summarize(Tensor::of<float>({2, 0}, {}), 3) == "[]");
  CHECK(summarize(kMatrix, -1) == "[[1 2][3 4]]");
  CHECK(summarize(kMatrix, 2) == "[[1 2]...]");
  CHECK(summarize(Tensor::of<float>({0}, {}), 3) == "[]");
  CHECK(summarize(Tensor::of<bool>({2, 1, 2}, {true, false, true, true}), -1) ==
        "[[[1 0]][[1 1]]]");
  CHECK(summarize(kMatrix, 0) == "[...]");
}

}  // namespace tagflow::devices
