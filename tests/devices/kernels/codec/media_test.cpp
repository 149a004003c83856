// Pictures and sounds as TensorFlow decodes and encodes them.
#include <doctest/doctest.h>

#include <string>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

TEST_CASE("files are decoded and encoded as by TensorFlow, byte by byte") {
  const RecordedCounts counts = check_recorded_cases("media.txt");
  CHECK(counts.ops ==
        std::set<std::string>{"DecodeAndCropJpeg", "DecodeBmp", "DecodeGif",
                              "DecodeImage", "DecodeJpeg", "DecodePng",
                              "DecodeWav", "DecodeWebP", "EncodeJpeg",
                              "EncodeJpegVariableQuality", "EncodePng",
                              "EncodeWav", "ExtractJpegShape"});
  CHECK(counts.refused >= 100);
}

TEST_CASE("pictures that few programs write are decoded as by TensorFlow") {
  const RecordedCounts counts = check_recorded_cases("pictures.txt");
  CHECK(counts.ops.size() == 7);
  CHECK(counts.refused >= 50);
}

namespace {

// A slope of `side` x `side` pixels of `channels` numbers.
Tensor slope(int64_t side, int64_t channels) {
  Tensor picture = Tensor::make(DataType::kUInt8, {side, side, channels});
  int64_t i = 0;
  for (uint8_t& number : picture.mutable_flat<uint8_t>())
    number = uint8_t(i++ * 255 / (side * side * channels));
  return picture;
}

std::string encoded(const char* op, const Tensor& picture) {
  auto outputs = run_op(op, {picture});
  REQUIRE(outputs.ok());
  return (*outputs)[0].scalar_value<std::string>();
}

// A big-endian number of 4 bytes in a PNG's head, with the chunk's checksum
// left as it was.
std::string with_side(std::string file, size_t at, uint32_t side) {
  for (size_t i = 0; i < 4; ++i) file[at + i] = char(side >> (8 * (3 - i)));
  return file;
}

}  // namespace

TEST_CASE("a PNG is decoded to what was encoded") {
  for (const int64_t channels : {1, 3, 4}) {
    const Tensor picture = slope(33, channels);
    expect_close(
        run_op("DecodePng", {Tensor::scalar(encoded("EncodePng", picture))}),
        picture);
  }
}

TEST_CASE("a JPEG of a few bytes does not ask for any number of numbers") {
  // Progressive, and by arithmetic coding, which needs no bit for a block.
  const auto jpeg = [](int side) {
    std::string file("\xff\xd8\xff\xdb\x00\x43\x00", 7);
    file += std::string(64, '\1');
    file += std::string("\xff\xca\x00\x11\x08", 5);
    for (int i = 0; i < 2; ++i) {
      file += char(side >> 8);
      file += char(side & 255);
    }
    file += std::string("\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00", 10);
    file += std::string("\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03", 10);
    return file + std::string("\x00\x00\x00\x00\xff\xd9", 6);
  };
  CHECK(run_op("DecodeJpeg", {Tensor::scalar(jpeg(600))}).ok());
  expect_error(run_op("DecodeJpeg", {Tensor::scalar(jpeg(6000))}),
               Code::kResourceExhausted, "bytes of coefficients");
}

TEST_CASE("a JPEG that ends early is continued by grey, or refused") {
  const std::string whole = encoded("EncodeJpeg", slope(160, 3));
  const Tensor part = Tensor::scalar(whole.substr(0, whole.size() / 2));
  expect_error(run_op("DecodeJpeg", {part}), Code::kInvalidArgument,
               "[DecodeJpeg] the JPEG cannot be decoded: it ends too early");
  const auto all = run_op("DecodeJpeg", {Tensor::scalar(whole)});
  const auto recovered =
      run_op("DecodeJpeg", {part}, {{"try_recover_truncated", true}});
  const auto black =
      run_op("DecodeJpeg", {part}, {{"acceptable_fraction", 0.2F}});
  REQUIRE(all.ok());
  REQUIRE(recovered.ok());
  REQUIRE(black.ok());
  const auto pixels = [](const auto& outputs) {
    return outputs->at(0).template flat<uint8_t>();
  };
  const size_t last = pixels(all).size() - 1;
  CHECK(pixels(recovered)[0] == pixels(all)[0]);
  CHECK(pixels(recovered)[last] == 128);
  CHECK(pixels(black)[0] == pixels(all)[0]);
  CHECK(pixels(black)[last] == 0);
}

TEST_CASE("heads that ask for much memory are refused before it is taken") {
  // Of a PNG the sides are behind the name of the first chunk.
  constexpr size_t kWidth = 16, kHeight = 20;
  const std::string png = encoded("EncodePng", slope(4, 1));
  for (const uint32_t side : {60'000u, 0x7fffffffu, 0u}) {
    const std::string wide =
        with_side(with_side(png, kWidth, side), kHeight, side);
    expect_error(run_op("DecodePng", {Tensor::scalar(wide)}),
                 Code::kInvalidArgument, "the PNG cannot be decoded");
  }
  // Two bytes for each side of a JPEG, behind its marker.
  std::string jpeg = encoded("EncodeJpeg", slope(16, 1));
  const size_t sides = jpeg.find("\xff\xc0") + 5;
  jpeg.replace(sides, 4, "\x50\x00\x50\x00", 4);
  expect_error(run_op("DecodeJpeg", {Tensor::scalar(jpeg)}),
               Code::kInvalidArgument, "are too few for 20480 x 20480 pixels");
  jpeg.replace(sides, 4, "\xff\xdc\xff\xdc", 4);
  expect_error(run_op("DecodeJpeg", {Tensor::scalar(jpeg)}),
               Code::kResourceExhausted, "is larger than 536870912 numbers");
  // A GIF of one pixel, whose frame says 65535 x 65535, and then again.
  std::string gif("GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff", 19);
  gif += std::string("\x2c\0\0\0\0\xff\xff\xff\xff\0\2\2\x44\1\0\x3b", 16);
  expect_error(run_op("DecodeGif", {Tensor::scalar(gif)}),
               Code::kResourceExhausted, "65535 x 65535 pixels");
}

TEST_CASE("errors of pictures name what is wrong") {
  const Tensor text = Tensor::scalar("some text");
  expect_error(run_op("DecodeImage", {text}), Code::kInvalidArgument,
               "9 bytes are none of PNG, JPEG, GIF, BMP and WebP");
  expect_error(run_op("DecodePng", {text}, {{"channels", int64_t{2}}}),
               Code::kInvalidArgument,
               "`channels` must be 0, 1, 3 or 4, not 2");
  const Tensor png = Tensor::scalar(encoded("EncodePng", slope(4, 1)));
  expect_error(run_op("DecodeBmp", {png}), Code::kInvalidArgument,
               "this op does not decode PNG: DecodeImage does");
  expect_error(run_op("DecodeJpeg", {png}, {{"ratio", int64_t{3}}}),
               Code::kInvalidArgument, "ratio must be 1, 2, 4 or 8, not 3");
}

}  // namespace tagflow::devices
