// Records of files, compressed ones too, against hostile lengths.
#include "devices/files/record_file.h"

#include <doctest/doctest.h>

#include <random>

#include "devices/files/crc32c.h"
#include "tests/devices/files/deflated.h"
#include "tests/devices/files/memory_files.h"
#include "tests/graph/hand_made.h"

namespace tagflow::checkpoint {

namespace {

using graph::testing::must;
using tagflow::testing::deflated;

// The head of a record that says to have so many bytes.
std::string head(uint64_t length) {
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  const uint32_t checksum = mask_crc32c(crc32c(bytes));
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  return bytes;
}

InputStream stream_of(MemoryFiles& files, const std::string& bytes,
                      Compression compression) {
  files.put("r", bytes);
  return InputStream(must(files.open("r")), compression);
}

}  // namespace

TEST_CASE("a length that a record does not have takes no memory") {
  std::string bytes;
  append_record(bytes, "first");
  const size_t begin = bytes.size();
  for (const uint64_t length :
       {InputStream::kMostExpanded, uint64_t(1) << 40, UINT64_MAX - 16}) {
    CAPTURE(length);
    const std::string whole = bytes + head(length) + "rest";
    for (const Compression compression :
         {Compression::kNone, Compression::kGzip}) {
      MemoryFiles files;
      const bool is_packed = compression == Compression::kGzip;
      InputStream stream = stream_of(
          files, is_packed ? deflated(whole, true) : whole, compression);
      std::string_view data;
      CHECK(must(read_record(stream, data)));
      CHECK(data == "first");
      const Status status = read_record(stream, data).status();
      CHECK(status.code() ==
            (is_packed ? Code::kResourceExhausted : Code::kDataLoss));
      CHECK_MESSAGE(status.message().find(fmt::format(
                        "the record at byte {}", begin)) != std::string::npos,
                    status.to_string());
    }
  }
}

TEST_CASE("a stream goes ahead by any number of bytes, up to its end") {
  std::mt19937 random(11);
  std::string bytes(5000, ' ');
  for (char& byte : bytes) byte = char(random());
  for (const Compression compression :
       {Compression::kNone, Compression::kGzip}) {
    for (int round = 0; round < 50; ++round) {
      MemoryFiles files;
      files.put("r", compression == Compression::kGzip ? deflated(bytes, true)
                                                       : bytes);
      InputStream stream(must(files.open("r")), compression, 600);
      uint64_t at = 0;
      for (bool is_there = true; is_there;) {
        const uint64_t skipped = random() % 2000;
        is_there = must(stream.skip_ahead(skipped));
        CHECK(is_there == (at + skipped <= bytes.size()));
        at = std::min<uint64_t>(at + skipped, bytes.size());
        CHECK(stream.position() == at);
        const size_t wanted = random() % 900;
        const std::string_view next = must(stream.peek(wanted));
        CHECK(next.size() >= std::min<uint64_t>(wanted, bytes.size() - at));
        CHECK(bytes.compare(at, next.size(), next) == 0);
      }
      CHECK(!must(stream.skip_ahead(UINT64_MAX)));
      CHECK(must(stream.skip_ahead(0)));
    }
  }
}

}  // namespace tagflow::checkpoint
