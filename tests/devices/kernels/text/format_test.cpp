#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("numbers are written as printf writes them") {
  const Tensor values = Tensor::vector<float>({1.5f, -2, 1e10f});
  auto text = [&](AttrMap attrs) {
    return run_op("AsString", {values}, attrs);
  };
  expect_close(text({}), Tensor::vector<std::string>(
                             {"1.500000", "-2.000000", "10000000000.000000"}));
  expect_close(text({{"shortest", true}}),
               Tensor::vector<std::string>({"1.5", "-2", "1e+10"}));
  expect_close(
      text({{"precision", 1}, {"width", 6}, {"fill", "0"}}),
      Tensor::vector<std::string>({"0001.5", "-002.0", "10000000000.0"}));
  expect_close(
      run_op("AsString", {Tensor::vector<int32_t>({7, -1})}, {{"width", 3}}),
      Tensor::vector<std::string>({"  7", " -1"}));
  expect_close(run_op("AsString",
                      {Tensor::scalar(std::numeric_limits<uint64_t>::max())}),
               Tensor::scalar("18446744073709551615"));
  expect_close(run_op("AsString", {Tensor::scalar(true)}),
               Tensor::scalar("true"));
  expect_close(run_op("AsString", {Tensor::scalar(Complex64(1, -2))},
                      {{"shortest", true}}),
               Tensor::scalar("(1,-2)"));
}

TEST_CASE("AsString refuses formats that would run away") {
  auto refused = [](AttrMap attrs, std::string_view text) {
    expect_error(run_op("AsString", {Tensor::scalar(1.0f)}, std::move(attrs)),
                 Code::kInvalidArgument, text);
  };
  refused({{"width", 2000000000}},
          "[AsString] node \"op\": width or precision is too large");
  refused({{"fill", "%"}}, "fill");
  refused({{"fill", "00"}}, "fill");
  refused({{"scientific", true}, {"shortest", true}}, "both");
}

TEST_CASE("StringFormat with a summary of no elements leaves a scalar out") {
  const auto shown = [](const Tensor& tensor) {
    return run_op("StringFormat", {tensor},
                  {{"T", std::vector<DataType>{DataType::kInt32}},
                   {"template", "a%sb"},
                   {"summarize", 0}});
  };
  expect_close(shown(Tensor::scalar(5)), Tensor::scalar("a...b"));
  expect_close(shown(Tensor::vector<int32_t>({5, 6})),
               Tensor::scalar("a[ ...]b"));
}

TEST_CASE("templates are filled with summaries") {
  const Tensor matrix = Tensor::of<int32_t>({2, 2}, {1, 2, 3, 4});
  expect_close(
      run_op("StringFormat", {matrix, Tensor::scalar("x")},
             {{"T", std::vector<DataType>{DataType::kInt32, DataType::kString}},
              {"template", "a {} b {}"},
              {"placeholder", "{}"}}),
      Tensor::scalar("a [[1 2]\n [3 4]] b \"x\""));
  expect_close(
      run_op(
          "StringFormat", {Tensor::vector<float>({0, 1, 2, 3, 4, 5.5f, 6, 7})},
          {{"T", std::vector<DataType>{DataType::kFloat}}, {"summarize", 2}}),
      Tensor::scalar("[0 1 ... 6 7]"));
  // Floats and strings as TensorFlow 2.21 writes them.
  const auto shown = [](const Tensor& tensor) {
    return run_op("StringFormat", {tensor},
                  {{"T", std::vector<DataType>{tensor.dtype()}},
                   {"template", "%s"},
                   {"summarize", int64_t(-1)}});
  };
  const float infinity = std::numeric_limits<float>::infinity();
  expect_close(shown(Tensor::vector<float>({1 / 3.f, 123456.789f, 16777216,
                                            1e20f, .1f, -infinity, NAN, -0.f})),
               Tensor::scalar("[0.333333343 123456.789 16777216 1e+20 0.1 "
                              "-inf nan -0]"));
  expect_close(shown(Tensor::vector<double>({1 / 3., 123456.789, 1e300})),
               Tensor::scalar("[0.33333333333333331 123456.789 1e+300]"));
  expect_close(shown(Tensor::scalar("t\t\"q\"\n\\'\x01\xc3\xa9")),
               Tensor::scalar("\"t\\t\\\"q\\\"\\n\\\\\\'\\001\xc3\xa9\""));
  // As TensorFlow writes them.
  const auto summary = [](const Tensor& value, int64_t elements) {
    return run_op(
        "StringFormat", {value},
        {{"T", std::vector<DataType>{value.dtype()}}, {"summarize", elements}});
  };
  expect_close(summary(matrix, 0), Tensor::scalar("[\n ...]"));
  expect_close(summary(matrix, -1), Tensor::scalar("[[1 2]\n [3 4]]"));
  expect_close(summary(Tensor::make(DataType::kFloat, {0}), 3),
               Tensor::scalar("[]"));
  expect_close(summary(Tensor::make(DataType::kBool, {2, 0}), 3),
               Tensor::scalar(""));
  expect_error(summary(matrix, int64_t{1} << 31), Code::kInvalidArgument,
               "summarize 2147483648 is not an int32");
  constexpr int64_t kMany = int64_t{1} << 40;
  for (const int64_t elements : {-1, 0, 3})
    expect_close(summary(Tensor::make(DataType::kFloat, {kMany, 0}), elements),
                 Tensor::scalar("[\n ...]"));
  expect_close(summary(Tensor::make(DataType::kFloat, {2, kMany, kMany, 0}), 3),
               Tensor::scalar("[\n\n\n ...]"));
  expect_error(run_op("StringFormat", {matrix},
                      {{"T", std::vector<DataType>{DataType::kInt32}},
                       {"template", "no hole"}}),
               Code::kInvalidArgument,
               "[StringFormat] node \"op\": 0 placeholders for 1 inputs");
}

TEST_CASE("text becomes numbers, or an error that quotes it") {
  expect_close(run_op("StringToNumber",
                      {Tensor::vector<std::string>({"1.5", " -2 ", "1e3"})}),
               Tensor::vector<float>({1.5f, -2, 1000}));
  auto parse = [](const char* text, DataType type) {
    return run_op("StringToNumber", {Tensor::scalar(text)},
                  {{"out_type", type}});
  };
  expect_close(parse("-9223372036854775808", DataType::kInt64),
               Tensor::scalar(std::numeric_limits<int64_t>::min()));
  expect_close(parse("1e400", DataType::kDouble),
               Tensor::scalar(std::numeric_limits<double>::infinity()));
  expect_error(parse("2147483648", DataType::kInt32), Code::kInvalidArgument,
               "\"2147483648\" is not a number of type int32");
  expect_close(parse("0x10", DataType::kFloat), Tensor::scalar(16.f));
  expect_close(parse(" -0X1.8p1 ", DataType::kDouble), Tensor::scalar(-3.0));
  CHECK_FALSE(parse("0x10", DataType::kInt32).ok());
  for (const char* text : {"", " ", "1x", "+-1", "0x", "--1", "0x1g"})
    CHECK_FALSE(parse(text, DataType::kFloat).ok());
  CHECK_FALSE(parse("1.5", DataType::kInt32).ok());
}

}  // namespace tagflow::devices
