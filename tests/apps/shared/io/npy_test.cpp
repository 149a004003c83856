#include "apps/shared/io/npy.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "graph/float16.h"
#include "tests/temp_path.h"

namespace tagflow {
namespace {

using io::format_npy;
using io::parse_npy;

// A version 1.0 file of this header, exactly as long as said.
std::string file_of(std::string_view header, std::string_view elements) {
  std::string text(header);
  text += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += char(text.size() & 0xff);
  bytes += char(text.size() >> 8);
  return bytes + text + std::string(elements);
}

std::string header_of(std::string_view descr, std::string_view shape,
                      std::string_view order = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}",
                     descr, order, shape);
}

std::string error_of(std::string_view bytes) {
  const Result<Tensor> tensor = parse_npy(bytes);
  return tensor.ok() ? "" : tensor.status().to_string();
}

void check_round_trip(const Tensor& tensor) {
  const Result<std::string> bytes = format_npy(tensor);
  REQUIRE(bytes.ok());
  const Result<Tensor> again = parse_npy(*bytes);
  REQUIRE(again.ok());
  CHECK(identical(*again, tensor));
}

TEST_CASE(".npy: every numeric type survives a round trip") {
  check_round_trip(Tensor::scalar(true));
  check_round_trip(Tensor::scalar<int8_t>(-3));
  check_round_trip(Tensor::scalar<int16_t>(-300));
  check_round_trip(Tensor::scalar<int32_t>(-70000));
  check_round_trip(Tensor::scalar<int64_t>(-(int64_t{1} << 40)));
  check_round_trip(Tensor::scalar<uint8_t>(200));
  check_round_trip(Tensor::scalar<uint16_t>(60000));
  check_round_trip(Tensor::scalar<uint32_t>(4000000000u));
  check_round_trip(Tensor::scalar<uint64_t>(~uint64_t{0}));
  check_round_trip(Tensor::scalar(Half(1.5f)));
  check_round_trip(Tensor::scalar(BFloat16(1.5f)));
  check_round_trip(Tensor::scalar(0.1f));
  check_round_trip(Tensor::scalar(0.1));
  check_round_trip(Tensor::scalar(Complex64(1, -2)));
  check_round_trip(Tensor::scalar(Complex128(1, -2)));
}

TEST_CASE(".npy: every rank survives a round trip") {
  check_round_trip(Tensor::vector<float>({1, 2, 3}));
  check_round_trip(Tensor::make(DataType::kFloat, {0, 3}));
  check_round_trip(Tensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6}));
  check_round_trip(Tensor::of<int32_t>({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}));
}

TEST_CASE(".npy: the bytes written are those that numpy writes") {
  const std::string bytes =
      format_npy(Tensor::of<int32_t>({2, 1}, {1, 2})).value();
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }";
  expected.append(127 - expected.size(), ' ');
  expected += std::string("\n\x01\0\0\0\x02\0\0\0", 9);
  CHECK(bytes == expected);
}

TEST_CASE(".npy: column-major arrays are read row-major") {
  // [[1, 2, 3], [4, 5, 6]] column by column.
  const auto tensor = parse_npy(
      file_of(header_of("|u1", "(2, 3)", "True"), "\x01\x04\x02\x05\x03\x06"));
  REQUIRE(tensor.ok());
  CHECK(identical(*tensor, Tensor::of<uint8_t>({2, 3}, {1, 2, 3, 4, 5, 6})));
}

TEST_CASE(".npy: column-major arrays of rank 3 are read row-major") {
  std::string elements(24, '\0');
  Tensor expected = Tensor::make(DataType::kUInt8, {2, 3, 4});
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        const int value = 100 * i + 10 * j + k;
        elements[size_t(i + 2 * j + 6 * k)] = char(value);
        expected.mutable_data<uint8_t>()[i * 12 + j * 4 + k] = uint8_t(value);
      }
    }
  }
  const auto tensor =
      parse_npy(file_of(header_of("|u1", "(2, 3, 4)", "True"), elements));
  REQUIRE(tensor.ok());
  CHECK(identical(*tensor, expected));
}

TEST_CASE(".npy: two bytes without a meaning are bfloat16") {
  for (const char* descr : {"|V2", "<V2", "V2"}) {
    CAPTURE(descr);
    const auto tensor = parse_npy(file_of(
        header_of(descr, "(2,)"), std::string_view("\xc0\x3f\x00\xc0", 4)));
    REQUIRE(tensor.ok());
    CHECK(identical(
        *tensor, Tensor::vector<BFloat16>({BFloat16(1.5f), BFloat16(-2.0f)})));
  }
}

TEST_CASE(".npy: big-endian elements are swapped, complex parts apart") {
  const auto number = parse_npy(
      file_of(header_of(">i4", "(1,)"), std::string_view("\0\0\1\2", 4)));
  REQUIRE(number.ok());
  CHECK(number->scalar_value<int32_t>() == 258);
  const auto complex = parse_npy(file_of(
      header_of(">c8", "()"), std::string_view("\x3f\x80\0\0\x40\0\0\0", 8)));
  REQUIRE(complex.ok());
  CHECK(complex->scalar_value<Complex64>() == Complex64(1, 2));
}

TEST_CASE(
    ".npy: versions 2.0 and 3.0, and other orders of the keys, are read") {
  const std::string header =
      "{\"shape\": (2,), \"descr\": \"<i2\", \"fortran_order\": False}";
  for (const char version : {2, 3}) {
    std::string bytes("\x93NUMPY", 6);
    bytes += {version, 0, char(header.size()), 0, 0, 0};
    bytes += header + std::string("\1\0\2\0", 4);
    const auto tensor = parse_npy(bytes);
    REQUIRE(tensor.ok());
    CHECK(identical(*tensor, Tensor::vector<int16_t>({1, 2})));
  }
}

TEST_CASE(".npy: what numpy reads is read, though it writes no such file") {
  const Tensor expected = Tensor::vector<int16_t>({1, 2});
  const std::string elements("\1\0\2\0", 4);
  for (const char* descr : {"i2", "=i2", "|i2"}) {
    CAPTURE(descr);
    const auto tensor = parse_npy(file_of(header_of(descr, "(2,)"), elements));
    REQUIRE(tensor.ok());
    CHECK(identical(*tensor, expected));
  }
  for (const char* descr : {"b1", "<b1", ">b1"})
    CHECK(parse_npy(file_of(header_of(descr, "(2,)"), elements)).ok());
  // Spaces of all kinds, the last of two values, and bytes at the end.
  const auto tensor = parse_npy(
      file_of("\n{'shape':\t(7,\n8), 'descr': '<f4', 'fortran_order': True,\r"
              "'descr': '<i2', 'shape': (2,), 'fortran_order': False}\f\n",
              elements + "more"));
  REQUIRE(tensor.ok());
  CHECK(identical(*tensor, expected));
}

TEST_CASE(".npy: a bool of any other byte than 0 is true") {
  const auto tensor = parse_npy(
      file_of(header_of("|b1", "(3,)"), std::string_view("\0\1\x80", 3)));
  REQUIRE(tensor.ok());
  CHECK(identical(*tensor, Tensor::vector<bool>({false, true, true})));
}

TEST_CASE(".npy: malformed files are refused, and the message says why") {
  const std::string four = "abcd";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "no magic bytes"},
      {"PK\x03\x04", "no magic bytes"},
      {"\x93NUMPY", "cut short"},
      {std::string("\x93NUMPY\x04\x00\x01\x00", 10), "version 4.0"},
      {std::string("\x93NUMPY\x00\x00\x01\x00", 10), "version 0.0"},
      {std::string("\x93NUMPY\x03\x01\x01\x00", 10), "version 3.1"},
      {std::string("\x93NUMPY\x01\x07\x01\x00", 10), "version 1.7"},
      {std::string("\x93NUMPY\x01\x00\x01", 9), "cut short before"},
      {std::string("\x93NUMPY\x01\x00\xff\xff", 10), "0 are left"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12),
       "4294967295 bytes: the limit is 65536"},
      {file_of("", four), "expected '{' at byte 1"},
      {file_of("{", four), "a quoted string"},
      {file_of("{'descr", four), "a closing quote"},
      {file_of("{}", four), "no 'descr'"},
      {file_of("{'descr': '<f4', 'fortran_order': False}", four), "no 'shape'"},
      {file_of("{'colour': 'red'}", four), "unknown key 'colour'"},
      {file_of("{'descr': [('a', '<f4')]}", four), "structures"},
      {file_of(header_of("<f4", "(1,)") + "x", four), "nothing more"},
      {file_of(header_of("|O", "(1,)"), four),
       "type '|O'; give the array a type, as array.astype('float32')"},
      {file_of(header_of("<U1", "(1,)"), four),
       "type '<U1'; strings are read from a .json file, as "
       "json.dump(array.tolist(), file) writes it"},
      {file_of(header_of("|S4", "(1,)"), four), "type '|S4'; strings are read"},
      {file_of(header_of("<U1", "(1,)"), four), "type '<U1'"},
      {file_of(header_of("|S4", "(1,)"), four), "type '|S4'"},
      {file_of(header_of("<M8[ns]", "()"), four), "type '<M8[ns]'"},
      {file_of(header_of("?f4", "(1,)"), four), "type '?f4'"},
      {file_of(header_of("<", "(1,)"), four), "type '<'"},
      {file_of(header_of("", "(1,)"), four), "type ''"},
      {file_of(header_of("V4", "(1,)"), four), "type 'V4'"},
      {file_of(header_of("|V4", "(1,)"), four), "type '|V4'"},
      {file_of(header_of("V", "(1,)"), four), "type 'V'"},
      {file_of(header_of("|<V2", "(2,)"), four), "type '|<V2'"},
      {file_of(header_of("<f4", "(1)"), four), "','"},
      {file_of(header_of("<f4", "(1 1)"), four), "','"},
      {file_of(header_of("<f4", "(-1,)"), four), "a dimension"},
      {file_of(header_of("<f4", "(1.5,)"), four), "','"},
      {file_of(header_of("<f4", "[1]"), four), "'('"},
      {file_of(header_of("<f4", "(99999999999999999999,)"), four), "64 bits"},
      {file_of(header_of("<f4", "(1,)", "0"), four), "True or False"},
      {file_of(header_of("<f4", "(2,)"), four), "4 bytes are left"},
      {file_of(header_of("<f8", "(2305843009213693952,)"), four),
       "4 bytes are left"},
      {file_of(header_of("<f4", "(4294967296, 4294967296)"), four), "overflow"},
  };
  for (const auto& [bytes, part] : cases) {
    const auto& message = part;  // no lambda captures a structured binding
    CAPTURE(message);
    CHECK(error_of(bytes).find(message) != std::string::npos);
  }
}

TEST_CASE(".npy: a file cut short anywhere is refused") {
  const std::string bytes =
      format_npy(Tensor::of<float>({2, 2}, {1, 2, 3, 4})).value();
  for (size_t length = 0; length < bytes.size(); ++length) {
    CHECK(!error_of(bytes.substr(0, length)).empty());
  }
}

TEST_CASE(".npy: more dimensions than a tensor may have are refused") {
  std::string shape = "(";
  for (int i = 0; i < 300; ++i) shape += "1, ";
  CHECK(error_of(file_of(header_of("|u1", shape + ")"), "a"))
            .find("more than 254 dimensions") != std::string::npos);
}

TEST_CASE(".npy: quantized types are written as plain ones of the same bytes") {
  const Tensor plain = Tensor::vector<uint8_t>({1, 200});
  const auto bytes = format_npy(plain.with_dtype(DataType::kQUInt8));
  REQUIRE(bytes.ok());
  CHECK(identical(parse_npy(*bytes).value(), plain));
}

TEST_CASE("strings have no .npy form") {
  const Result<std::string> bytes = format_npy(Tensor::scalar("text"));
  REQUIRE(!bytes.ok());
  CHECK(bytes.status().message() ==
        "[npy] the format has no elements of type string");
}

TEST_CASE(".npy: a file that is not there is NotFound, and named") {
  const Result<Tensor> tensor = io::read_npy("/nonexistent/x.npy");
  REQUIRE(!tensor.ok());
  CHECK(tensor.status().code() == Code::kNotFound);
  CHECK(tensor.status().message() ==
        "[file] there is no file \"/nonexistent/x.npy\"");
}

TEST_CASE("an .npy file that is written can be read") {
  const auto path = testing::temp_path("array.npy");
  const Tensor tensor = Tensor::vector<double>({1, 2, 3, 4});
  REQUIRE(io::write_npy(path, tensor).ok());
  const Result<Tensor> again = io::read_npy(path);
  std::filesystem::remove(path);
  REQUIRE(again.ok());
  CHECK(identical(*again, tensor));
}

}  // namespace
}  // namespace tagflow
