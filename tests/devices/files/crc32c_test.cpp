#include "devices/files/crc32c.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>

namespace tagflow::checkpoint {
namespace {

// Longer than what is computed in three parts at a time.
std::string long_text(size_t bytes) {
  std::string text(bytes, '\0');
  uint32_t state = 1;
  for (char& c : text) c = char((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

TEST_CASE("checksums are those of the definition") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(mask_crc32c(crc32c("\x1a\x11"
                           "CRC test, one two")) == 0x5794d08a);
}

TEST_CASE("the processor's checksum is the portable one, at any length") {
  const std::string text = long_text(100'000);
  for (size_t length = 0; length < text.size(); length += 1 + length / 3) {
    for (size_t from : {0, 1, 5}) {
      const auto part = std::string_view(text).substr(from, length);
      CHECK(crc32c(part) == extend_crc32c_portable(0, part));
    }
  }
}

TEST_CASE("checksums of parts are joined, and extended, to that of the whole") {
  CHECK(rc::check([](const std::string& a, const std::string& b) {
    RC_ASSERT(join_crc32c(crc32c(a), crc32c(b), b.size()) == crc32c(a + b));
    RC_ASSERT(extend_crc32c(crc32c(a), b) == crc32c(a + b));
  }));
  const std::string text = long_text(100'000);
  const auto a = std::string_view(text).substr(0, 30'001);
  const auto b = std::string_view(text).substr(30'001);
  CHECK(join_crc32c(crc32c(a), crc32c(b), b.size()) == crc32c(text));
}

}  // namespace
}  // namespace tagflow::checkpoint
