// Databases that LMDB made, and hostile ones.
#include "devices/files/lmdb_file.h"

#include <doctest/doctest.h>

#include "devices/files/byte_reader.h"
#include "tests/devices/files/lmdb_databases.h"
#include "tests/devices/files/memory_files.h"
#include "tests/graph/hand_made.h"

namespace tagflow::checkpoint {
namespace {

using graph::testing::must;

struct Reading {
  LmdbRecords records;  // before the end, or an error
  Status status;
};

Reading read(const std::string& bytes) {
  MemoryFiles files;
  files.put("f", bytes);
  Reading reading;
  auto file = LmdbFile::open(must(files.open("f")));
  reading.status = file.status();
  while (reading.status.ok()) {
    std::string key, value;
    const auto found = file->next(key, value);
    reading.status = found.status();
    if (!found.ok() || !*found) break;
    reading.records.emplace_back(key, value);
  }
  return reading;
}

std::string recorded(const std::string& name) {
  return must(read_whole(local_files(), lmdb_path(name), 1 << 20));
}

template <class T>
std::string with(std::string bytes, size_t offset, T number) {
  bytes.replace(offset, sizeof number, reinterpret_cast<const char*>(&number),
                sizeof number);
  return bytes;
}

// --- A database that is made here ------------------------------------------

constexpr uint16_t kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8;
constexpr size_t kPage = 512;

std::string head(uint64_t number, uint16_t flags, uint16_t lower,
                 uint16_t upper) {
  std::string bytes;
  append_number(bytes, number);
  append_number(bytes, uint16_t(0));
  append_number(bytes, flags);
  append_number(bytes, lower);
  append_number(bytes, upper);
  return bytes;
}

std::string node(uint32_t size_or_child, uint16_t flags, std::string_view key,
                 std::string_view value = "") {
  std::string bytes;
  append_number(bytes, size_or_child);
  append_number(bytes, flags);
  append_number(bytes, uint16_t(key.size()));
  return bytes.append(key).append(value);
}

std::string big_node(std::string_view key, uint32_t size, uint64_t page) {
  std::string value;
  append_number(value, page);
  return node(size, 1, key, value);
}

// The last node is the first in the page.
std::string page(uint64_t number, uint16_t flags,
                 const std::vector<std::string>& nodes) {
  std::string offsets, all;
  for (const std::string& node : nodes) {
    all = node + all;
    append_number(offsets, uint16_t(kPage - all.size()));
  }
  std::string bytes = head(number, flags, uint16_t(16 + offsets.size()),
                           uint16_t(kPage - all.size())) +
                      offsets;
  bytes.resize(kPage - all.size());
  return bytes + all;
}

// Places in the only meta page.
constexpr size_t kMagicAt = 16, kVersionAt = 20, kPageBytesAt = 40,
                 kDepthAt = 94, kRecordsAt = 120, kRootAt = 128, kLastAt = 136;

// The pages follow the two meta pages. The root is page 2.
std::string database(uint16_t depth, uint64_t records,
                     const std::vector<std::string>& pages) {
  std::string bytes = head(0, kMeta, 0, 0);
  bytes.resize(2 * kPage);
  bytes = with(bytes, kMagicAt, uint32_t(0xbeefc0de));
  bytes = with(bytes, kVersionAt, uint32_t(1));
  bytes = with(bytes, kPageBytesAt, uint32_t(kPage));
  bytes = with(bytes, kDepthAt, depth);
  bytes = with(bytes, kRecordsAt, records);
  bytes = with(bytes, kRootAt, uint64_t(2));
  for (const std::string& page : pages) bytes += page;
  return with(bytes, kLastAt, uint64_t(bytes.size() / kPage - 1));
}

// Page 2 leads to pages 3 and 4, each with one record; that of page 4 lies on
// pages 5 and 6. Page 7 is free.
std::string two_records() {
  std::string value = head(5, kOverflow, 2, 0);
  value.resize(3 * kPage, 'v');
  return database(2, 2,
                  {page(2, kBranch, {node(3, 0, ""), node(4, 0, "b")}),
                   page(3, kLeaf, {node(3, 0, "a", "one")}),
                   page(4, kLeaf, {big_node("b", 600, 5)}), value});
}

// Places of the nodes.
constexpr size_t kSecondChild = 3 * kPage - 17, kOne = 4 * kPage - 12,
                 kBig = 5 * kPage - 17;

bool says(const Reading& reading, std::string_view text,
          Code code = Code::kDataLoss) {
  INFO(reading.status.to_string());
  CHECK(reading.status.code() == code);
  const bool found =
      reading.status.message().find(text) != std::string_view::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("a database of LMDB is read in the order of its keys") {
  const auto has = [](const char* name, const LmdbRecords& records) {
    CAPTURE(name);
    const Reading reading = read(recorded(name));
    CHECK_MESSAGE(reading.status.ok(), reading.status.to_string());
    CHECK(reading.records == records);
  };
  has("second.mdb", lmdb_records());
  has("compact.mdb", lmdb_records());
  has("small.mdb", lmdb_records(1, 40, 100));
  has("empty.mdb", {});
  has("emptied.mdb", {});
}

TEST_CASE("the older meta page counts if the newer one is damaged") {
  // The newer one is the first, so that the second one has to be found.
  for (const size_t offset : {10u, 16u, 20u, 40u}) {
    CAPTURE(offset);
    CHECK(read(with(recorded("second.mdb"), offset, uint16_t(0))).records ==
          lmdb_records(0));
    CHECK(read(with(recorded("small.mdb"), offset, uint16_t(0))).records ==
          lmdb_records(0, 40, 100));
  }
}

TEST_CASE("keys with several values, and databases with names, are refused") {
  constexpr Code kCode = Code::kUnimplemented;
  says(read(recorded("values.mdb")), "the key \"k\" has several values", kCode);
  const Reading named = read(recorded("databases.mdb"));
  CHECK(named.records == LmdbRecords{{"a", "one"}});
  says(named, "the key \"inner\" has several values, or is the name of a",
       kCode);
}

TEST_CASE("each number of a database is checked") {
  const std::string good = two_records();
  {
    const Reading reading = read(good);
    CHECK_MESSAGE(reading.status.ok(), reading.status.to_string());
    CHECK(reading.records ==
          LmdbRecords{{"a", "one"}, {"b", std::string(600, 'v')}});
  }
  const auto fails = [&](size_t offset, auto number, std::string_view text) {
    CAPTURE(offset);
    CAPTURE(number);
    says(read(with(good, offset, number)), text);
  };
  const std::string_view none = "the file is no database of LMDB";
  fails(10, uint16_t(0), none);
  fails(kMagicAt, uint32_t(1), none);
  fails(kVersionAt, uint32_t(2), none);
  for (const uint32_t bytes : {0u, 256u, 513u, 65536u})
    fails(kPageBytesAt, bytes, none);
  fails(kPageBytesAt, uint32_t(1024), "page 2 is damaged: it is no branch");
  for (const uint16_t depth : {0, 33})
    fails(kDepthAt, depth, "levels of pages");
  fails(kDepthAt, uint16_t(1), "page 2 is damaged: it is no leaf");
  fails(kDepthAt, uint16_t(3), "page 3 is damaged: it is no branch");
  for (const uint64_t records : {uint64_t(1), uint64_t(3), UINT64_MAX})
    fails(kRecordsAt, records,
          fmt::format("has 2 records, but says {}", records));
  for (const uint64_t root : {uint64_t(0), uint64_t(1), uint64_t(8),
                              uint64_t(1) << 55, UINT64_MAX - 1})
    fails(kRootAt, root,
          fmt::format("the file has 8 pages, so not 1 page from page {} on",
                      root));
  fails(kRootAt, UINT64_MAX, "has 0 records, but says 2");
  fails(kLastAt, uint64_t(3),
        "the file has 4 pages, so not 1 page from page 4 on");
  fails(kLastAt, UINT64_MAX,
        "the file has 0 pages, so not 1 page from page 2 on");

  const std::string_view leaf = "page 3 is damaged: it is no leaf";
  constexpr size_t kLeafAt = 3 * kPage;
  fails(kLeafAt, uint64_t(4), leaf);
  for (const uint16_t flags : {0, 1, 4, 8, 0x22, 0x42})
    fails(kLeafAt + 10, flags, leaf);
  for (const uint16_t lower : {0, 16, 19, 510, 65534})
    fails(kLeafAt + 12, lower, leaf);
  for (const uint16_t upper : {0, 17, 513, 65535})
    fails(kLeafAt + 14, upper, leaf);
  for (const uint16_t begin : {505, 65535})
    fails(kLeafAt + 16, begin, "page 3 is damaged: node 0 does not fit");

  fails(kSecondChild, uint32_t(1), "so not 1 page from page 1 on");
  fails(kSecondChild + 4, uint16_t(1), "so not 1 page from page 4294967300 on");
  fails(kSecondChild, uint32_t(2), "page 2 is damaged: it is no leaf");
  fails(kOne, uint32_t(4), "page 3 is damaged: node 0 does not fit");
  fails(kOne, UINT32_MAX, "page 3 is damaged: node 0 does not fit");
  fails(kOne + 4, uint16_t(8), "the value of the key \"a\" is damaged");
  fails(kOne + 4, uint16_t(1), "page 3 is damaged: node 0 does not fit");
  fails(kOne + 6, uint16_t(0), "page 3 is damaged: a key is empty");
  fails(kOne + 6, uint16_t(5), "page 3 is damaged: node 0 does not fit");
  fails(kBig, UINT32_MAX, "so not 8388609 pages from page 5 on");
  fails(kBig, uint32_t(1020), "page 5 is damaged: no value of 1020 bytes");
  for (const uint64_t number : {uint64_t(1), uint64_t(7), UINT64_MAX})
    fails(kBig + 9, number,
          fmt::format("so not 2 pages from page {} on", number));
  fails(kBig + 9, uint64_t(4), "page 4 is damaged: no value of 600 bytes");
  fails(5 * kPage + 12, uint32_t(1), "page 5 is damaged: no value of 600");
}

TEST_CASE("pages that are used again and again end the walk") {
  const std::string leaf = page(3, kLeaf, {node(3, 0, "a", "one")});
  Reading reading = read(database(
      2, 30,
      {page(2, kBranch, std::vector(30, node(3, 0, "k"))), leaf, leaf, leaf}));
  CHECK(reading.records.size() == 5);
  says(reading, "page 3 follows more pages than there are");
  std::string value = head(3, kOverflow, 1, 0);
  value.resize(kPage, 'v');
  reading = read(database(
      1, 20, {page(2, kLeaf, std::vector(20, big_node("k", 496, 3))), value}));
  CHECK(reading.records.size() == 3);
  says(reading, "page 3 follows more pages than there are");
}

TEST_CASE("bytes of a page are given once, however many nodes they have") {
  std::string crowded =
      page(2, kLeaf, {node(400, 0, "k", std::string(400, 'v'))});
  const auto begin = load_number<uint16_t>(crowded.substr(16));
  for (size_t at = 18; at < 34; at += 2) crowded = with(crowded, at, begin);
  const Reading reading = read(database(1, 9, {with(crowded, 12, '\x22')}));
  CHECK(reading.records.size() == 1);
  says(reading, "page 2 is damaged: node 1 does not fit");
}

TEST_CASE("a file that ends too early is damaged, wherever it ends") {
  const std::string whole = recorded("small.mdb");
  const LmdbRecords records = lmdb_records(1, 40, 100);
  // Its last page is of the list of free pages, which is not read.
  for (size_t size = 0; size < whole.size() - kPage; size += 61) {
    CAPTURE(size);
    const Reading reading = read(whole.substr(0, size));
    CHECK(reading.status.code() == Code::kDataLoss);
    CHECK(reading.records.size() < records.size());
    CHECK(std::equal(reading.records.begin(), reading.records.end(),
                     records.begin()));
  }
}

TEST_CASE("a byte that is changed is an error, or changes what it says") {
  const std::string whole = recorded("small.mdb");
  size_t errors = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    // All of heads, some of the rest.
    if (at % kPage >= 64 && at % 7 != 0) continue;
    for (const uint8_t change : {0x01, 0x80, 0xff}) {
      CAPTURE(at);
      const Reading reading =
          read(with(whole, at, uint8_t(whole[at] ^ change)));
      const Code code = reading.status.code();
      const bool is_known = code == Code::kOk || code == Code::kDataLoss ||
                            code == Code::kUnimplemented;
      CHECK_MESSAGE(is_known, reading.status.to_string());
      errors += code == Code::kOk ? 0 : 1;
      size_t bytes = 0;
      for (const auto& [key, value] : reading.records)
        bytes += key.size() + value.size();
      CHECK(bytes < whole.size());
    }
  }
  CHECK(errors > 1000);
}

}  // namespace tagflow::checkpoint
