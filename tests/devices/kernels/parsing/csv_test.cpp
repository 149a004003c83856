// The results are those of TensorFlow 2.21.
#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

const Tensor kNeedsInt = Tensor::vector<int64_t>({});
const Tensor kNeedsFloat = Tensor::vector<float>({});
const Tensor kNeedsText = Tensor::vector<std::string>({});

Result<Outputs> decode(const char* record, std::vector<Tensor> defaults,
                       AttrMap attrs = {}) {
  std::vector<DataType> types;
  for (const Tensor& value : defaults) types.push_back(value.dtype());
  defaults.insert(defaults.begin(), Tensor::scalar(record));
  attrs["OUT_TYPE"] = types;
  return run_op("DecodeCSV", defaults, attrs);
}

void expect_text(const char* record, const char* text, AttrMap attrs = {}) {
  expect_close(decode(record, {kNeedsText}, std::move(attrs)),
               Tensor::scalar(text));
}
void expect_refused(const char* record, const std::vector<Tensor>& defaults,
                    std::string_view why, AttrMap attrs = {}) {
  expect_error(decode(record, defaults, std::move(attrs)), kInvalid, why);
}

}  // namespace

TEST_CASE("fields of CSV are numbers and texts, and may have defaults") {
  const auto fields =
      decode(" 1 ,+2.5,, b",
             {kNeedsInt, kNeedsFloat, Tensor::scalar<int32_t>(7), kNeedsText});
  REQUIRE(fields.ok());
  expect_close((*fields)[0], Tensor::scalar<int64_t>(1));
  expect_close((*fields)[1], Tensor::scalar(2.5f));
  expect_close((*fields)[2], Tensor::scalar<int32_t>(7));
  expect_close((*fields)[3], Tensor::scalar(" b"));
  const auto last = decode("1,", {kNeedsInt, Tensor::vector<int64_t>({9})});
  REQUIRE(last.ok());
  expect_close((*last)[1], Tensor::scalar<int64_t>(9));
  const auto missing =
      decode("NA", {Tensor::scalar(2.0)}, {{"na_value", std::string("NA")}});
  expect_close(missing, Tensor::scalar(2.0));
  expect_close(
      run_op("DecodeCSV",
             {Tensor::of<std::string>({2, 1}, {"1,2", "3,4"}), kNeedsInt,
              kNeedsInt},
             {{"OUT_TYPE", std::vector{DataType::kInt64, DataType::kInt64}}}),
      Tensor::of<int64_t>({2, 1}, {1, 3}));
}

TEST_CASE("quotes keep delimiters, line ends, and quotes") {
  expect_text("\"a,\"\"b\"", "a,\"b");
  expect_text("\"a\nb\"", "a\nb");
  expect_text("a\"b", "a\"b", {{"use_quote_delim", false}});
  expect_close(decode("\"12\"", {kNeedsInt}), Tensor::scalar<int64_t>(12));
  expect_close(decode("\"\"", {Tensor::vector<std::string>({"z"})}),
               Tensor::scalar("z"));
  for (const char* record : {"a\"b", "a\nb", "1\r\n"})
    expect_refused(record, {kNeedsText}, "has a quote or a line end in it");
  expect_refused("\"a\"b\"", {kNeedsText}, "must be doubled");
  for (const char* record : {"\"ab", "\""})
    expect_refused(record, {kNeedsText}, "has no end");
}

TEST_CASE("only selected columns are read") {
  const AttrMap second = {{"select_cols", std::vector<int64_t>{1}}};
  expect_close(decode("1,2,x", {kNeedsInt}, second),
               Tensor::scalar<int64_t>(2));
  const auto outer = decode("1,2,", {kNeedsInt, Tensor::scalar<int64_t>(5)},
                            {{"select_cols", std::vector<int64_t>{0, 2}}});
  REQUIRE(outer.ok());
  expect_close((*outer)[1], Tensor::scalar<int64_t>(5));
  expect_refused("1", {kNeedsInt}, "has 0 fields, not 1", second);
  expect_refused("1", {kNeedsInt}, "2 columns for 1 outputs",
                 {{"select_cols", std::vector<int64_t>{1, 2}}});
  for (const auto& columns : {std::vector<int64_t>{2, 0}, {-1, 1}})
    expect_refused("1", {kNeedsInt, kNeedsInt}, "must be increasing",
                   {{"select_cols", columns}});
}

TEST_CASE("records of other fields are refused") {
  expect_refused("1", {kNeedsInt, kNeedsInt}, "record 0 has 1 fields, not 2");
  expect_refused("1,2,3", {kNeedsInt, kNeedsInt}, "has 3 fields");
  expect_refused("", {Tensor::scalar<int64_t>(1)}, "has 0 fields");
  expect_refused("1,", {kNeedsInt, kNeedsInt},
                 "field 1 is missing, and has no default");
  expect_refused("1.5", {kNeedsInt}, "\"1.5\", is not a number of int64");
  expect_refused("3000000000", {Tensor::scalar<int32_t>(1)}, "not a number");
  expect_refused("1", {Tensor::vector<int64_t>({1, 2})},
                 "must be one value, not int64[2]");
  for (const char* delimiter : {"", "ab"})
    expect_refused("1", {kNeedsInt}, "must be one character",
                   {{"field_delim", std::string(delimiter)}});
}

}  // namespace tagflow::devices
