#include "devices/files/bundle_shard.h"

#include <doctest/doctest.h>

#include <map>

#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"
#include "graph/temporary_file.h"
#include "tests/devices/files/memory_files.h"

namespace tagflow::checkpoint {
namespace {

constexpr uint64_t kSave = 77;
constexpr std::string_view kPrefix = "folder/c";

Tensor numbers(float first) {
  return Tensor::vector<float>({first, first + 1, first + 2});
}

// Written by another process as shard `shard` of three.
Result<ForeignShard> written(MemoryFiles& files, int shard,
                             std::vector<std::string> keys,
                             std::vector<Tensor> tensors) {
  const std::string path = data_path(kPrefix, shard, 3);
  const std::atomic<bool> stopped = false;
  TAGFLOW_ASSIGN(WrittenShard made, write_shard(path, kSave, keys, tensors,
                                                stopped, {&files, true}));
  made.file->leave();
  return ForeignShard{"task " + std::to_string(shard),
                      temporary_name(path, kSave),
                      shard,
                      made.size,
                      made.checksum,
                      std::move(made.entries)};
}

// Saves two tensors of its own, and three of others.
Status save(MemoryFiles& files) {
  TAGFLOW_ASSIGN(auto one, written(files, 1, {"a", "b"},
                                   {numbers(1), Tensor::scalar(true)}));
  TAGFLOW_ASSIGN(auto two, written(files, 2, {"c"}, {numbers(5)}));
  TAGFLOW_RETURN_IF_ERROR(check_shard(one, kSave, files));
  TAGFLOW_RETURN_IF_ERROR(check_shard(two, kSave, files));
  TAGFLOW_ASSIGN(const auto writer,
                 BundleWriter::create_first(std::string(kPrefix), 3, {&files}));
  TAGFLOW_RETURN_IF_ERROR(writer->adopt(std::move(two)));
  TAGFLOW_RETURN_IF_ERROR(writer->adopt(std::move(one)));
  TAGFLOW_RETURN_IF_ERROR(writer->add("own", numbers(9)));
  TAGFLOW_RETURN_IF_ERROR(
      writer->add("text", Tensor::scalar(std::string("own, too"))));
  TAGFLOW_RETURN_IF_ERROR(writer->finish());
  return writer->publish();
}

void check_saved(MemoryFiles& files) {
  const auto reader = BundleReader::open(std::string(kPrefix), files);
  INFO(reader.status().to_string());
  REQUIRE(reader.ok());
  CHECK((*reader)->check_complete().ok());
  CHECK((*reader)->entries().size() == 5);
  for (const auto& [name, value] :
       {std::pair<const char*, Tensor>{"a", numbers(1)},
        {"b", Tensor::scalar(true)},
        {"c", numbers(5)},
        {"own", numbers(9)},
        {"text", Tensor::scalar(std::string("own, too"))}}) {
    const auto read = (*reader)->read(name);
    REQUIRE(read.ok());
    CHECK(identical(*read, value));
  }
}

bool has_temporary(const MemoryFiles& files) {
  for (const auto& [path, bytes] : files.contents())
    if (is_temporary_name(path)) return true;
  return false;
}

}  // namespace

TEST_CASE("shards of other processes become those of one bundle") {
  MemoryFiles files;
  REQUIRE(save(files).ok());
  check_saved(files);
  CHECK(files.contents().size() == 4);
  CHECK(!has_temporary(files));
}

TEST_CASE("a bundle of several processes is whole or absent, whatever fails") {
  MemoryFiles whole;
  REQUIRE(save(whole).ok());
  REQUIRE(whole.operations > 10);
  for (const bool is_crash : {false, true})
    for (int failing = 0; failing < whole.operations; ++failing) {
      CAPTURE(is_crash);
      CAPTURE(failing);
      MemoryFiles files;
      files.failing = failing;
      files.is_crash = is_crash;
      const Status status = save(files);
      files.recover();
      if (is_crash) files.lose_power();
      if (files.exists(index_path(kPrefix))) {
        check_saved(files);
      } else {
        CHECK(!status.ok());
      }
    }
}

TEST_CASE("a file is that of a shard if its writer and the saver agree") {
  MemoryFiles files;
  std::vector<Tensor> tensors = {Tensor::make(DataType::kUInt8, {6'000'000})};
  auto* bytes = tensors[0].mutable_data<uint8_t>();
  for (int64_t i = 0; i < tensors[0].num_elements(); ++i)
    bytes[i] = uint8_t(i / 1000);
  auto shard = written(files, 1, {"a"}, tensors);
  REQUIRE(shard.ok());
  CHECK(check_shard(*shard, kSave, files).ok());
  const std::string good = files.contents().at(shard->path);
  // Other bytes, all of them, at the begin and at the end alone.
  for (const auto& [from, to] : {std::pair<size_t, size_t>{0, good.size()},
                                 {0, 1},
                                 {good.size() - 1, good.size()}}) {
    std::string other = good;
    for (size_t i = from; i < to; ++i) other[i] = char(other[i] + 1);
    files.put(shard->path, other);
    CHECK(check_shard(*shard, kSave, files).code() == Code::kDataLoss);
  }
  files.put(shard->path, good + "x");
  CHECK(check_shard(*shard, kSave, files).code() == Code::kDataLoss);
  files.put(shard->path, good.substr(1));
  CHECK(check_shard(*shard, kSave, files).code() == Code::kDataLoss);
  CHECK(files.remove(shard->path).ok());
  const Status missing = check_shard(*shard, kSave, files);
  CHECK(missing.code() == Code::kFailedPrecondition);
  CHECK(missing.message().find("task 1") != std::string::npos);
}

TEST_CASE("what a process says of its shard is checked") {
  MemoryFiles files;
  const auto good = written(files, 1, {"a"}, {numbers(1)});
  REQUIRE(good.ok());
  const auto refuses = [&](const std::function<void(ForeignShard&)>& change) {
    const auto writer =
        BundleWriter::create_first(std::string(kPrefix), 3, {&files}).value();
    REQUIRE(writer->add("own", numbers(9)).ok());
    ForeignShard shard = *good;
    shard.path = "folder/another";
    change(shard);
    return writer->adopt(std::move(shard)).code() == Code::kInvalidArgument;
  };
  CHECK(!refuses([](ForeignShard&) {}));
  for (const int number : {-1, 0, 2, 3})
    CHECK(refuses([&](ForeignShard& shard) { shard.shard = number; }));
  CHECK(refuses([](ForeignShard& s) { s.entries[0].key = "own"; }));
  CHECK(refuses([](ForeignShard& s) { s.entries[0].key.clear(); }));
  CHECK(refuses([](ForeignShard& s) { s.entries[0].key = std::string(1, 0); }));
  CHECK(refuses([](ForeignShard& s) { s.entries[0].shard = 2; }));
  CHECK(refuses([](ForeignShard& s) { s.entries[0].offset = s.size; }));
  CHECK(refuses([](ForeignShard& s) { s.entries[0].size = UINT64_MAX; }));
  CHECK(refuses([](ForeignShard& s) { s.entries.push_back(s.entries[0]); }));
  // A shard that is missing, or comes twice.
  const auto writer =
      BundleWriter::create_first(std::string(kPrefix), 3, {&files}).value();
  CHECK(writer->adopt(*good).ok());
  CHECK(writer->adopt(*good).code() == Code::kInvalidArgument);
  CHECK(writer->finish().code() == Code::kInvalidArgument);
}

TEST_CASE("a shard that is not wanted any more is removed") {
  MemoryFiles files;
  const std::vector<std::string> keys = {"a"};
  std::vector<Tensor> tensors = {numbers(1)};
  const std::atomic<bool> stopped = true;
  const auto made = write_shard(data_path(kPrefix, 1, 2), kSave, keys, tensors,
                                stopped, {&files});
  CHECK(made.status().code() == Code::kCancelled);
  CHECK(files.contents().empty());
}

TEST_CASE("names of shards are those of their numbers") {
  const auto place = parse_data_path("a/b.data-00002-of-00005");
  REQUIRE(place.has_value());
  CHECK(place->shard == 2);
  CHECK(place->num_shards == 5);
  CHECK(parse_data_path(data_path("x", 123'456, 1'000'000)).has_value());
  for (const char* other :
       {"", "a", "a.data-", "a.data-00001", "a.data-00001-of-",
        "a.data-00001-of-00001", "a.data-1-of-2", "a.data--0001-of-00002",
        "a.data-00000-of-00002.index", "a.data-00000-of-99999999999",
        "a.data-+0001-of-00002", "a.data-00000-of-00002 "})
    CHECK_MESSAGE(!parse_data_path(other).has_value(), other);
}

}  // namespace tagflow::checkpoint
