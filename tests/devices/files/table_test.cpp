#include "devices/files/table.h"

#include <doctest/doctest.h>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>
#include <rapidcheck.h>

#include <cstring>
#include <map>
#include <memory>

#include "devices/files/byte_reader.h"
#include "devices/files/crc32c.h"

namespace tagflow::checkpoint {
namespace {

using Entries = std::vector<TableEntry>;

// A text as LevelDB reads and writes it.
class LevelDbText final : public leveldb::WritableFile,
                          public leveldb::RandomAccessFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    text.append(data.data(), data.size());
    return {};
  }
  leveldb::Status Close() override { return {}; }
  leveldb::Status Flush() override { return {}; }
  leveldb::Status Sync() override { return {}; }
  leveldb::Status Read(uint64_t offset, size_t count, leveldb::Slice* result,
                       char*) const override {
    *result = leveldb::Slice(text.data() + offset, count);
    return {};
  }
  std::string text;
};

std::string leveldb_table(const Entries& entries,
                          leveldb::CompressionType compression,
                          size_t block_size) {
  leveldb::Options options;
  options.compression = compression;
  options.block_size = block_size;
  LevelDbText file;
  leveldb::TableBuilder builder(options, &file);
  for (const auto& [key, value] : entries) builder.Add(key, value);
  REQUIRE(builder.Finish().ok());
  return file.text;
}

Entries read_by_leveldb(const std::string& bytes) {
  LevelDbText file;
  file.text = bytes;
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::Table* opened = nullptr;
  REQUIRE(leveldb::Table::Open(options, &file, bytes.size(), &opened).ok());
  const std::unique_ptr<leveldb::Table> table(opened);
  leveldb::ReadOptions read;
  read.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> it(table->NewIterator(read));
  Entries entries;
  for (it->SeekToFirst(); it->Valid(); it->Next())
    entries.emplace_back(it->key().ToString(), it->value().ToString());
  REQUIRE(it->status().ok());
  return entries;
}

Entries long_entries() {
  Entries entries;
  for (int i = 0; i < 2000; ++i)
    entries.emplace_back(fmt::format("layer/{:06}/kernel", i),
                         std::string(size_t(i % 90), 'v'));
  return entries;
}

TEST_CASE("a table that is written is read, here and by LevelDB") {
  CHECK(rc::check([](const std::map<std::string, std::string>& map) {
    const Entries entries(map.begin(), map.end());
    const auto bytes = format_table(entries);
    RC_ASSERT(bytes.ok());
    const auto again = parse_table(*bytes, "t");
    RC_ASSERT(again.ok());
    RC_ASSERT(*again == entries);
    RC_ASSERT(read_by_leveldb(*bytes) == entries);
  }));
  CHECK(read_by_leveldb(format_table(long_entries()).value()) ==
        long_entries());
}

TEST_CASE("tables of many blocks, compressed or not, are read") {
  for (const auto compression :
       {leveldb::kNoCompression, leveldb::kSnappyCompression}) {
    for (const size_t block_size : {1, 100, 4096, 1 << 20}) {
      const std::string bytes =
          leveldb_table(long_entries(), compression, block_size);
      const auto entries = parse_table(bytes, "t");
      REQUIRE(entries.ok());
      CHECK(*entries == long_entries());
    }
  }
}

TEST_CASE("a table of which any byte is changed is refused or the same") {
  for (const auto compression :
       {leveldb::kNoCompression, leveldb::kSnappyCompression}) {
    const Entries entries = {{"", "h"}, {"aaaa", "1"}, {"aaab", "2222222222"}};
    const std::string bytes = leveldb_table(entries, compression, 16);
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const char mask : {'\1', '\x80', '\xff'}) {
        std::string changed = bytes;
        changed[i] = char(changed[i] ^ mask);
        const auto result = parse_table(changed, "t");
        if (result.ok()) CHECK(*result == entries);
        if (!result.ok()) CHECK(result.status().code() == Code::kDataLoss);
      }
      CHECK(!parse_table(std::string_view(bytes).substr(0, i), "t").ok());
    }
  }
}

// --- What only somebody who means harm would write ---------------------------

// A block with its checksum.
std::string sealed(std::string block, char type) {
  block += type;
  append_number(block, mask_crc32c(crc32c(block)));
  return block;
}

struct Place {
  uint64_t offset, size;
};

std::string table_of(std::string blocks, Place index) {
  std::string footer;
  for (const uint64_t number :
       {uint64_t{0}, uint64_t{0}, index.offset, index.size})
    append_varint(footer, number);
  footer.resize(40);
  append_number(footer, uint64_t{0xdb4775248b80fb57});
  return blocks + footer;
}

// A table with an index block alone.
std::string with_index(const std::string& block, char type = 0) {
  return table_of(sealed(block, type), {0, block.size()});
}

// An entry of a block.
std::string entry_of(uint64_t shared, uint64_t key, uint64_t value,
                     std::string_view rest) {
  std::string bytes;
  for (const uint64_t number : {shared, key, value})
    append_varint(bytes, number);
  return bytes + std::string(rest);
}

std::string error_of(const std::string& bytes) {
  const auto result = parse_table(bytes, "t");
  return result.ok() ? "" : std::string(result.status().message());
}

TEST_CASE("sizes that a table only claims allocate nothing") {
  const std::string no_starts(4, '\0');
  constexpr uint64_t kHuge = ~uint64_t{0};
  CHECK(error_of(table_of(sealed(no_starts, 0), {0, kHuge})).find("outside") !=
        std::string::npos);
  CHECK(error_of(table_of(sealed(no_starts, 0), {kHuge, 1})).find("outside") !=
        std::string::npos);
  for (const std::string& entry :
       {entry_of(0, kHuge, 0, "a"), entry_of(0, 1, kHuge, "a"),
        entry_of(1, 1, 0, "a"), entry_of(0, 1, kHuge - 1, "a")})
    CHECK(error_of(with_index(entry + no_starts)).find("entry of a block") !=
          std::string::npos);
  CHECK(error_of(with_index("\xff\xff\xff\xff")).find("too short") !=
        std::string::npos);
  CHECK(error_of(with_index("")).find("too short") != std::string::npos);
  // A snappy text that says it has 4 GiB - 1.
  CHECK(error_of(with_index("\xff\xff\xff\xff\x0f", 1)).find("compressed") !=
        std::string::npos);
  CHECK(error_of(with_index("abcd", 2)).find("compressed") !=
        std::string::npos);
  std::string place;
  append_varint(place, 1);
  append_varint(place, kHuge - 5);
  CHECK(error_of(
            with_index(entry_of(0, 1, place.size(), "a" + place) + no_starts))
            .find("outside") != std::string::npos);
}

TEST_CASE("a table refuses keys that are not ascending") {
  const std::string no_starts(4, '\0');
  const std::string data =
      entry_of(0, 1, 0, "b") + entry_of(0, 1, 0, "a") + no_starts;
  std::string place;
  append_varint(place, 0);
  append_varint(place, data.size());
  const std::string index =
      entry_of(0, 1, place.size(), "c" + place) + no_starts;
  const std::string sealed_data = sealed(data, 0);
  CHECK(error_of(table_of(sealed_data + sealed(index, 0),
                          {sealed_data.size(), index.size()}))
            .find("not ascending") != std::string::npos);
}

TEST_CASE("a table refuses blocks that overlap or are not ascending") {
  const std::string no_starts(4, '\0');
  const std::string first = sealed(no_starts, 0);
  const std::string blocks =
      first + sealed(entry_of(0, 1, 0, "a") + no_starts, 0);
  const auto result = [&](std::initializer_list<Place> places) {
    std::string index;
    for (const Place& place : places) {
      std::string value;
      append_varint(value, place.offset);
      append_varint(value, place.size);
      index += entry_of(0, 0, value.size(), value);
    }
    index += no_starts;
    return error_of(
        table_of(blocks + sealed(index, 0), {blocks.size(), index.size()}));
  };
  const Place empty = {0, no_starts.size()}, full = {first.size(), 8};
  CHECK(result({empty, full}) == "");
  for (const auto& places : {std::initializer_list<Place>{empty, empty},
                             {empty, full, empty},
                             {full, full}})
    CHECK(result(places) ==
          "[checkpoint] the index \"t\" is damaged: its blocks are not "
          "ascending");
}

}  // namespace
}  // namespace tagflow::checkpoint
