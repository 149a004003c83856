#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

TEST_CASE("DecodeRaw turns bytes into rows of elements") {
  const Tensor bytes = Tensor::vector<std::string>(
      {std::string("\1\0\2\0", 4), std::string("\3\0\4\1", 4)});
  expect_close(run_op("DecodeRaw", {bytes}, {{"out_type", DataType::kInt16}}),
               Tensor::of<int16_t>({2, 2}, {1, 2, 3, 260}));
  expect_close(
      run_op("DecodeRaw", {bytes},
             {{"out_type", DataType::kInt16}, {"little_endian", false}}),
      Tensor::of<int16_t>({2, 2}, {256, 512, 768, 1025}));
  expect_error(run_op("DecodeRaw", {bytes}, {{"out_type", DataType::kDouble}}),
               Code::kInvalidArgument, "not a multiple");
  expect_error(run_op("DecodeRaw", {Tensor::vector<std::string>({"a", ""})},
                      {{"out_type", DataType::kUInt8}}),
               Code::kInvalidArgument, "make no tensor");
}

TEST_CASE("base64 goes there and back") {
  const Tensor plain = Tensor::vector<std::string>(
      {"", "a", "ab", "abc", std::string("\xff\xfe\0", 3)});
  const auto encoded = run_op("EncodeBase64", {plain});
  expect_close(encoded,
               Tensor::vector<std::string>({"", "YQ", "YWI", "YWJj", "__4A"}));
  expect_close(run_op("DecodeBase64", {(*encoded)[0]}), plain);
  const auto padded = run_op("EncodeBase64", {plain}, {{"pad", true}});
  expect_close(padded, Tensor::vector<std::string>(
                           {"", "YQ==", "YWI=", "YWJj", "__4A"}));
  expect_close(run_op("DecodeBase64", {(*padded)[0]}), plain);
}

TEST_CASE("DecodeBase64 refuses text that is not base64") {
  for (const char* text : {"A", "A+==", "====", "AB=C", "YQ=", "YQ==="})
    expect_error(run_op("DecodeBase64", {Tensor::scalar(text)}),
                 Code::kInvalidArgument, "web-safe base64");
}

}  // namespace tagflow::devices
