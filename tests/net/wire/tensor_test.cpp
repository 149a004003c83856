#include "net/wire/tensor.h"

#include <doctest/doctest.h>

#include <complex>

#include "tests/net/wire/hex.h"
#include "tests/net/wire/random_tensor.h"

namespace tagflow::net {
namespace {

std::string bytes_of(const Tensor& tensor) {
  Writer writer;
  write_tensor(writer, tensor);
  CHECK(writer.status().ok());
  return writer.bytes();
}

std::string error_of(std::string_view bytes,
                     uint64_t budget = Reader::kBudget) {
  Reader reader(bytes, "t", budget);
  const Tensor tensor = read_tensor(reader);
  const Status status = reader.finish();
  CHECK_FALSE(status.ok());
  return std::string(status.message());
}

// Whether the text has the part.
bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

TEST_CASE("tensors of every dtype and shape arrive as they were sent") {
  std::mt19937_64 random(1);
  for (DataType dtype : kSentTypes) {
    for (const Shape& shape :
         {Shape{}, Shape{0}, Shape{3}, Shape{2, 0, 5}, Shape{2, 3, 1, 4},
          Shape{1, 1, 1, 1, 1, 1, 1, 1}, Shape{1000}}) {
      const Tensor tensor = random_tensor(random, dtype, shape);
      CAPTURE(tensor.describe());
      const std::string bytes = bytes_of(tensor);
      Reader reader(bytes, "t");
      const Tensor found = read_tensor(reader);
      CHECK(reader.finish().ok());
      CHECK(identical(found, tensor));
    }
  }
}

TEST_CASE("tensors have the bytes that docs/wire.md says") {
  CHECK(hex(bytes_of(Tensor::scalar(1.5f))) == "01 00 04 00 00 c0 3f");
  CHECK(hex(bytes_of(Tensor::of<int64_t>({1, 2}, {1, -1}))) ==
        "09 02 01 02 10 01 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff");
  CHECK(hex(bytes_of(Tensor::vector<bool>({true, false}))) ==
        "0a 01 02 02 01 00");
  CHECK(hex(bytes_of(Tensor::vector<std::string>({"", "ab"}))) ==
        "07 01 02 04 00 02 61 62");
  CHECK(hex(bytes_of(Tensor::make(DataType::kDouble, {300, 0}))) ==
        "02 02 ac 02 00 00");
  CHECK(hex(bytes_of(Tensor::scalar(Complex64(1, -2)))) ==
        "08 00 08 00 00 80 3f 00 00 00 c0");
}

TEST_CASE("what means nothing in another process is refused by its name") {
  for (DataType dtype : {DataType::kResource, DataType::kVariant,
                         make_ref(DataType::kFloat), DataType::kInvalid}) {
    const Status status = check_sendable(dtype, "tensor stack:0");
    CHECK(status.code() == Code::kUnimplemented);
    CHECK(has(std::string(status.message()),
              "tensor stack:0 cannot leave its process"));
  }
  CHECK(check_sendable(DataType::kResource, "v:0").message() ==
        "[net|tensor] v:0 cannot leave its process: its dtype is resource");
  Writer writer;
  write_tensor(writer, Tensor::make(DataType::kVariant, {2}));
  CHECK(writer.status().code() == Code::kUnimplemented);
  CHECK(writer.bytes().empty());
  for (DataType dtype : kSentTypes) CHECK(check_sendable(dtype, "t").ok());
}

TEST_CASE("headers that a peer made up are refused by what is wrong") {
  CHECK(has(error_of(unhex("14 00 00")), "20 is not the number of a dtype"));
  CHECK(has(error_of(unhex("65 00 04 00 00 00 00")), "101 is not the number"));
  CHECK(has(error_of(unhex("01 00 05 00 00 00 00 00")),
            "float[] does not have 5 bytes"));
  CHECK(has(error_of(unhex("01 01 02 08 00 00")), "6 bytes are missing"));
  // 2^40 elements, without their bytes.
  CHECK(has(error_of(unhex("01 01 80 80 80 80 80 20 80 80 80 80 80 80 01")),
            "bytes are missing"));
  // More elements than a number can count.
  CHECK(has(error_of(unhex("01 02 ff ff ff ff ff ff ff ff 7f"
                           "ff ff ff ff ff ff ff ff 7f 00")),
            "overflow"));
  CHECK(has(error_of(unhex("01 01 ff ff ff ff ff ff ff ff ff 01 00")),
            "a dimension is 18446744073709551615"));
  CHECK(has(error_of(std::string("\x01\xff", 2) + std::string(255, '\1')),
            "rank"));
}

TEST_CASE("elements that a peer made up are refused") {
  CHECK(has(error_of(unhex("0a 01 02 02 01 02")),
            "element 1 of a bool[2] is 2, neither 0 nor 1"));
  CHECK(has(error_of(unhex("07 01 02 04 00 03 61 62")), "1 bytes are missing"));
  CHECK(has(error_of(unhex("07 01 02 05 00 02 61 62 63")),
            "1 bytes are left over"));
  CHECK(has(error_of(unhex("07 01 03 02 00 00")),
            "string[3] does not have 2 bytes"));
  CHECK(has(error_of(unhex("07 01 00 01 00")),
            "string[0] does not have 1 bytes"));
}

TEST_CASE("strings take no more memory than the budget") {
  const std::string bytes = bytes_of(Tensor::make(DataType::kString, {1000}));
  CHECK(has(error_of(bytes, 999 * sizeof(std::string)), "exceed the budget"));
  Reader reader(bytes, "t", 1000 * sizeof(std::string));
  CHECK(read_tensor(reader).num_elements() == 1000);
  CHECK(reader.finish().ok());
}

TEST_CASE("the bytes of a tensor are known before it is written") {
  std::mt19937_64 random(2);
  for (DataType dtype : kSentTypes) {
    const Tensor tensor = random_tensor(random, dtype, {17});
    Writer writer;
    write_elements(writer, tensor);
    CHECK(info_of(tensor).bytes == writer.bytes().size());
  }
}

}  // namespace
}  // namespace tagflow::net
