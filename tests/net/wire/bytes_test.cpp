#include "net/wire/bytes.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "tests/net/wire/hex.h"

namespace tagflow::net {
namespace {

uint64_t read_varint(std::string_view bytes, Status& status) {
  Reader reader(bytes, "test");
  const uint64_t value = reader.varint();
  status = reader.finish();
  return value;
}

std::string varint(uint64_t value) {
  Writer writer;
  writer.varint(value);
  return writer.bytes();
}

TEST_CASE("numbers of any size have the bytes that the page says") {
  CHECK(hex(varint(0)) == "00");
  CHECK(hex(varint(127)) == "7f");
  CHECK(hex(varint(300)) == "ac 02");
  CHECK(hex(varint(UINT64_MAX)) == "ff ff ff ff ff ff ff ff ff 01");
  Writer writer;
  writer.fixed(uint16_t{0x1234});
  writer.fixed(int64_t{-2});
  writer.text("ab");
  CHECK(hex(writer.bytes()) == "34 12 fe ff ff ff ff ff ff ff 02 61 62");
}

TEST_CASE("every number is read as it was written, and has one form") {
  CHECK(rc::check([](uint64_t number, uint8_t shift) {
    const uint64_t value = number >> (shift % 64);
    Status status;
    RC_ASSERT(read_varint(varint(value), status) == value);
    RC_ASSERT(status.ok());
  }));
  for (const char* longer : {"80 00", "ff 80 00",
                             "80 80 80 80 80 80 80 80 80 "
                             "02",
                             "ff ff ff ff ff ff ff ff ff ff 01"}) {
    CAPTURE(longer);
    Status status;
    read_varint(unhex(longer), status);
    CHECK(status.message().find("a number is too long") !=
          status.message().npos);
  }
}

TEST_CASE("the first error of a reader stays, and what follows is zero") {
  Reader reader("\x05xyz", "Thing");
  CHECK(reader.text().empty());
  CHECK(reader.varint() == 0);
  CHECK(reader.fixed<uint32_t>() == 0);
  CHECK_FALSE(reader.flag());
  CHECK(reader.count(1, 1) == 0);
  CHECK(reader.finish().code() == Code::kDataLoss);
  CHECK(reader.status().message() ==
        "[net|Thing] byte 1 of 4: 2 bytes are missing");
}

TEST_CASE("bytes that are left over are an error") {
  Reader reader("ab", "Thing");
  reader.fixed<uint8_t>();
  CHECK(reader.finish().message() ==
        "[net|Thing] byte 1 of 2: 1 bytes are left over");
}

TEST_CASE("a flag is zero or one") {
  CHECK_FALSE(Reader(std::string_view("\0", 1), "t").flag());
  CHECK(Reader("\1", "t").flag());
  Reader reader("\2", "t");
  CHECK_FALSE(reader.flag());
  CHECK(reader.finish().message().find("a flag is 2") != std::string::npos);
}

TEST_CASE("a count is checked against the bytes left and against the budget") {
  SUBCASE("it fits") {
    Reader reader(
        "\x02"
        "abcd",
        "t", 100);
    CHECK(reader.count(2, 50) == 2);
    CHECK(reader.ok());
  }
  SUBCASE("the bytes are too few") {
    Reader reader(
        "\x03"
        "abcd",
        "t", 1000);
    CHECK(reader.count(2, 1) == 0);
    CHECK(reader.status().message().find("more than 4 bytes can hold") !=
          std::string::npos);
  }
  SUBCASE("the memory is too much, all counts together") {
    Reader reader(
        "\x02"
        "a"
        "\x02"
        "abcd",
        "t", 199);
    CHECK(reader.count(1, 50) == 2);
    reader.fixed<uint8_t>();
    CHECK(reader.count(1, 50) == 0);
    CHECK(reader.status().message().find("exceed the budget") !=
          std::string::npos);
  }
  SUBCASE("the product would overflow") {
    const std::string bytes = varint(UINT64_MAX) + "abcd";
    Reader reader(bytes, "t");
    CHECK(reader.count(1, UINT64_MAX) == 0);
    CHECK_FALSE(reader.ok());
  }
}

}  // namespace
}  // namespace tagflow::net
