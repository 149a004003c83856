// Bundles that are damaged, and saves that fail halfway.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <new>

#include "devices/files/bundle_merge.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"
#include "devices/files/byte_reader.h"
#include "devices/files/crc32c.h"
#include "devices/files/table.h"
#include "graph/proto/checkpoint.pb.h"
#include "tests/devices/files/bundles.h"
#include "tests/devices/files/examples.h"
#include "tests/devices/files/kept_file.h"
#include "tests/devices/files/memory_files.h"
#include "tests/devices/no_memory.h"
#include "tests/failing_new.h"

namespace tagflow::checkpoint {
namespace {

// Reads all there is; each tensor that is read must be one of `tensors`.
void check_harmless(FileSystem& files, const std::string& prefix,
                    const Named& tensors) {
  const auto reader = BundleReader::open(prefix, files);
  if (!reader.ok()) return;
  for (const auto& [name, wanted] : tensors) {
    const auto tensor = (*reader)->read(name);
    if (tensor.ok()) CHECK(identical(*tensor, wanted));
  }
}

Named small_tensors() {
  return {{"a", example(DataType::kFloat, {3})},
          {"b", example(DataType::kString, {4})},
          {"c", example(DataType::kBool, {2, 2})}};
}

TEST_CASE("a bundle of which any byte is changed is refused or the same") {
  MemoryFiles files;
  save("p", small_tensors(), files, 2);
  for (const auto& [path, bytes] : files.contents()) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const char mask : {'\1', '\x80', '\xff'}) {
        std::string changed = bytes;
        changed[i] = char(changed[i] ^ mask);
        files.put(path, changed);
        check_harmless(files, "p", small_tensors());
      }
    }
    files.put(path, bytes);
  }
}

TEST_CASE("a bundle of which any file is cut anywhere is not complete") {
  MemoryFiles files;
  save("p", small_tensors(), files, 2);
  for (const auto& [path, bytes] : files.contents()) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      files.put(path, bytes.substr(0, i));
      const auto reader = BundleReader::open("p", files);
      CHECK((!reader.ok() || !(*reader)->check_complete().ok()));
      check_harmless(files, "p", small_tensors());
    }
    files.put(path, bytes);
  }
  check(files.remove("p.data-00001-of-00002"));
  CHECK(text_of(open_bundle("p", files)->check_complete()) ==
        "NotFound: [checkpoint] cannot open \"p.data-00001-of-00002\": not "
        "there");
}

TEST_CASE("a tensor of a bundle without memory is named with its file") {
  const Named tensors = {{"a", example(DataType::kFloat, {9, 9})},
                         {"b", example(DataType::kString, {4})}};
  MemoryFiles files;
  save("p", tensors, files);
  NoMemory allocator;
  for (const auto& [name, tensor] : tensors)
    CHECK(contains(text_of(open_bundle("p", files)->read(name, allocator)),
                   fmt::format("ResourceExhausted: [checkpoint] tensor {:?} of "
                               "\"p\": [",
                               name)));
}

TEST_CASE("a wrong checksum says which tensor is damaged") {
  MemoryFiles files;
  save("p", small_tensors(), files);
  std::string bytes = files.contents()["p.data-00000-of-00001"];
  bytes[0] = char(bytes[0] ^ 1);
  files.put("p.data-00000-of-00001", bytes);
  CHECK(text_of(open_bundle("p", files)->read("a")) ==
        "DataLoss: [checkpoint] tensor \"a\" of \"p\": the checksum is wrong");
}

// An index of these entries, with right checksums.
void put_index(MemoryFiles& files, std::vector<TableEntry> entries,
               const tensorflow::BundleHeaderProto& header) {
  entries.insert(entries.begin(), {"", header.SerializeAsString()});
  files.put("p.index", format_table(entries).value());
}

TEST_CASE("a big-endian bundle, and one of a later version, are refused") {
  MemoryFiles files;
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(1);
  header.set_endianness(tensorflow::BundleHeaderProto::BIG);
  put_index(files, {}, header);
  CHECK(text_of(BundleReader::open("p", files)) ==
        "Unimplemented: [checkpoint] \"p.index\" is of a big-endian machine; "
        "only little-endian checkpoints can be read");
  header.set_endianness(tensorflow::BundleHeaderProto::LITTLE);
  header.mutable_version()->set_min_consumer(2);
  put_index(files, {}, header);
  CHECK(contains(text_of(BundleReader::open("p", files)),
                 "needs a reader of version 2"));
  header.clear_version();
  header.set_num_shards(0);
  put_index(files, {}, header);
  CHECK(contains(text_of(BundleReader::open("p", files)), "it has 0 shards"));
}

tensorflow::BundleEntryProto entry_proto(std::vector<int64_t> dims,
                                         int64_t offset, int64_t size) {
  tensorflow::BundleEntryProto entry;
  entry.set_dtype(tensorflow::DT_FLOAT);
  for (const int64_t dim : dims)
    entry.mutable_shape()->add_dim()->set_size(dim);
  entry.set_offset(offset);
  entry.set_size(size);
  return entry;
}

std::string error_of(const tensorflow::BundleEntryProto& entry) {
  MemoryFiles files;
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(1);
  put_index(files, {{"x", entry.SerializeAsString()}}, header);
  files.put("p.data-00000-of-00001", std::string(100, 'x'));
  const auto reader = BundleReader::open("p", files);
  return text_of(reader.ok() ? (*reader)->read("x") : reader.status());
}

TEST_CASE("lengths that an index only claims allocate nothing") {
  constexpr int64_t kHuge = int64_t{1} << 61;
  CHECK(contains(error_of(entry_proto({kHuge, 2}, 0, 4)), "cannot have 4"));
  CHECK(contains(error_of(entry_proto({kHuge, 8}, 0, 4)), "overflow"));
  CHECK(contains(error_of(entry_proto({1 << 30}, 0, int64_t{4} << 30)),
                 "should end at 4294967296"));
  CHECK(contains(error_of(entry_proto({1}, 97, 4)), "should end at 101"));
  CHECK(contains(error_of(entry_proto({1}, INT64_MAX, 4)), "has 4 bytes at"));
  CHECK(contains(error_of(entry_proto({1}, -1, 4)), "has 4 bytes at -1"));
  CHECK(contains(error_of(entry_proto({-1}, 0, 4)), "DataLoss"));
  auto entry = entry_proto({1}, 0, 4);
  entry.set_shard_id(1);
  CHECK(contains(error_of(entry), "is in shard 1 of 1"));
  entry.set_shard_id(0);
  entry.set_dtype(tensorflow::DT_INT4);
  CHECK(contains(error_of(entry), "tensors of type 29 cannot be read"));
  entry.set_dtype(tensorflow::DT_VARIANT);
  CHECK(contains(error_of(entry), "tensors of variant cannot be read"));
  entry = entry_proto({kHuge}, 0, 50);
  entry.set_dtype(tensorflow::DT_STRING);
  CHECK(contains(error_of(entry), "cannot have 50 bytes"));
}

TEST_CASE("slices that share their bytes do not make a tensor of more") {
  MemoryFiles files;
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(1);
  auto whole = entry_proto({1000}, 0, 0);
  std::map<std::string, std::string> entries;
  const std::string data(40, 'x');
  for (int i = 0; i < 100; ++i) {
    auto part = entry_proto({10}, 0, 40);
    part.set_crc32c(mask_crc32c(crc32c(data)));
    auto& extent = *whole.add_slices()->add_extent();
    extent.set_start(10 * i);
    extent.set_length(10);
    entries[slice_key("x", TensorSlice({{10 * i, 10}}))] =
        part.SerializeAsString();
  }
  entries["x"] = whole.SerializeAsString();
  put_index(files, {entries.begin(), entries.end()}, header);
  files.put("p.data-00000-of-00001", data);
  CHECK(contains(text_of(open_bundle("p", files)->read("x")),
                 "1000 elements cannot be in 40 bytes"));
  whole.mutable_slices(1)->mutable_extent(0)->set_start(5);
  entries["x"] = whole.SerializeAsString();
  entries[slice_key("x", TensorSlice({{5, 10}}))] =
      entries[slice_key("x", TensorSlice({{0, 10}}))];
  put_index(files, {entries.begin(), entries.end()}, header);
  CHECK(contains(text_of(open_bundle("p", files)->read("x")),
                 "slices 0,10 and 5,10 overlap"));
}

Named other_tensors() {
  return {{"a", example(DataType::kFloat, {30})},
          {"d", example(DataType::kInt8, {4})}};
}

Status try_save(const std::string& prefix, const Named& tensors,
                FileSystem& files, int shards) {
  TAGFLOW_ASSIGN(const auto writer,
                 BundleWriter::create(prefix, shards, {&files, true}));
  for (const auto& [name, tensor] : tensors)
    TAGFLOW_RETURN_IF_ERROR(writer->add(name, tensor));
  TAGFLOW_RETURN_IF_ERROR(writer->finish());
  return writer->publish();
}

bool is_whole(FileSystem& files, const std::string& prefix,
              const Named& tensors) {
  const auto reader = BundleReader::open(prefix, files);
  if (!reader.ok() || !(*reader)->check_complete().ok()) return false;
  for (const auto& [name, wanted] : tensors) {
    const auto tensor = (*reader)->read(name);
    if (!tensor.ok() || !identical(*tensor, wanted)) return false;
  }
  return true;
}

TEST_CASE("a bundle whose save fails leaves the checkpoint before it") {
  for (int failing = 0;; ++failing) {
    MemoryFiles files;
    save("d/old", small_tensors(), files, 2);
    const auto before = files.contents();
    files.recover();
    files.failing = failing;
    const Status status = try_save("d/new", other_tensors(), files, 2);
    if (status.ok()) {
      CHECK(failing > 10);
      break;
    }
    CHECK(contains(status.message(), "No space left on device"));
    CHECK(files.contents() == before);
  }
}

TEST_CASE("an index that cannot be removed again keeps its shards") {
  for (const bool is_replaced : {false, true}) {
    MemoryFiles memory;
    if (is_replaced) save("d/p", small_tensors(), memory, 2);
    KeptFile files(memory, is_replaced ? "00002" : ".index");
    files.fails_after_rename = true;
    const Status status = try_save("d/p", other_tensors(), files, 2);
    CHECK(status.code() == Code::kResourceExhausted);
    // What has an index is whole.
    if (!is_replaced) CHECK(is_whole(memory, "d/p", other_tensors()));
    CHECK(memory.exists("d/p.index") == !is_replaced);
    check(try_save("d/p", small_tensors(), memory, 2));
    CHECK(is_whole(memory, "d/p", small_tensors()));
    CHECK(memory.contents().size() == 3);
  }
}

TEST_CASE("a checkpoint that cannot be removed is not replaced in part") {
  MemoryFiles memory;
  save("d/p", small_tensors(), memory, 2);
  const auto before = memory.contents();
  KeptFile files(memory, ".index");
  CHECK(try_save("d/p", other_tensors(), files, 2).code() ==
        Code::kPermissionDenied);
  CHECK(memory.contents() == before);
  const std::string sources[] = {"d/q"};
  save("d/q", other_tensors(), memory, 1);
  {
    auto merge = BundleMerge::prepare(sources, "d/p", {{&files, true}});
    REQUIRE(merge.ok());
    CHECK(merge->publish().code() == Code::kPermissionDenied);
  }
  CHECK(is_whole(memory, "d/p", small_tensors()));
  CHECK(is_whole(memory, "d/q", other_tensors()));
  CHECK(memory.contents().size() == before.size() + 2);
}

TEST_CASE("a merge that fails names no shard that is elsewhere") {
  for (int failing = 0;; ++failing) {
    MemoryFiles files;
    save("d/a", small_tensors(), files, 2);
    save("d/b", {{"z", example(DataType::kFloat, {30})}}, files);
    const auto before = files.contents();
    files.recover();
    files.failing = failing;
    const std::string sources[] = {"d/a", "d/b"};
    Status status;
    {
      auto merge = BundleMerge::prepare(sources, "d/c", {{&files, true}});
      status = merge.ok() ? merge->publish() : merge.status();
    }
    const bool is_new = files.exists("d/c.index");
    if (is_new) {
      CHECK(is_whole(files, "d/c", small_tensors()));
      CHECK(open_bundle("d/c", files)->read("z").ok());
    }
    // Nobody takes what is left of a source for all of it.
    for (const std::string prefix : {"d/a", "d/b"}) {
      const auto reader = BundleReader::open(prefix, files);
      CHECK((!reader.ok() || !(*reader)->check_complete().ok() ||
             files.contents() == before || prefix == "d/b"));
    }
    for (const auto& [path, bytes] : files.contents())
      CHECK(path.find(".tmp-") == path.npos);
    if (status.ok()) {
      CHECK(is_new);
      CHECK(files.contents().size() == 4);
      break;
    }
  }
}

TEST_CASE("after a write has failed, a file is never finished or published") {
  for (const bool is_large : {false, true}) {
    MemoryFiles files;
    files.put("f", "before");
    files.failing = 1;  // after its making
    {
      auto file = AtomicFile::create("f", {&files, true});
      REQUIRE(file.ok());
      const std::string bytes(is_large ? 300'000 : 10, 'x');
      const Status first = (*file)->append(bytes);
      CHECK(first.ok() == !is_large);
      CHECK_FALSE((*file)->finish().ok());
      files.recover();
      CHECK_FALSE((*file)->finish().ok());
      CHECK_FALSE((*file)->publish().ok());
      CHECK_FALSE((*file)->is_published());
      CHECK(files.contents()["f"] == "before");
    }
    CHECK(files.contents().size() == 1);
  }
  // The same of a sync.
  MemoryFiles files;
  files.failing = 2;
  {
    auto file = AtomicFile::create("f", {&files, true});
    REQUIRE(file.ok());
    check((*file)->append("text"));
    CHECK_FALSE((*file)->finish().ok());
    CHECK_FALSE((*file)->publish().ok());
  }
  CHECK(files.contents().empty());
}

TEST_CASE("a file that could not be renamed can be published later, or goes") {
  for (const bool is_repeated : {false, true}) {
    MemoryFiles files;
    files.put("f", "before");
    files.failing = 3;  // after its making, a write and a sync
    {
      auto file = AtomicFile::create("f", {&files, true});
      REQUIRE(file.ok());
      check((*file)->append("text"));
      check((*file)->finish());
      CHECK_FALSE((*file)->publish().ok());
      CHECK_FALSE((*file)->is_published());
      CHECK(files.contents()["f"] == "before");
      files.recover();
      if (is_repeated) check((*file)->publish());
      CHECK((*file)->is_published() == is_repeated);
    }
    CHECK(files.contents()["f"] == (is_repeated ? "text" : "before"));
    CHECK(files.contents().size() == 1);
  }
}

TEST_CASE("a name that was refused can be added, and nothing of it is there") {
  MemoryFiles files;
  const auto writer = start("d/p", 1, files);
  const Tensor two = example(DataType::kFloat, {2});
  const auto slice = [](std::string_view text) {
    return TensorSlice::parse(text).value();
  };
  CHECK_FALSE(writer->add("x", Tensor::make(DataType::kResource, {})).ok());
  CHECK_FALSE(writer->add_slice("x", {4}, slice("3,2"), two).ok());
  CHECK_FALSE(writer->add_slice("x", {4}, slice("0,3"), two).ok());
  check(writer->add("x", two));
  // Refused slices of a tensor are none of its slices.
  check(writer->add_slice("s", {4}, slice("0,2"), two));
  CHECK_FALSE(writer->add_slice("s", {4}, slice("0,2"), two).ok());
  CHECK_FALSE(writer->add_slice("s", {5}, slice("2,2"), two).ok());
  CHECK_FALSE(
      writer->add_slice("s", {4}, slice("2,2"), example(DataType::kInt32, {2}))
          .ok());
  check(writer->add_slice("s", {4}, slice("2,2"), two));
  check(writer->finish());
  check(writer->publish());
  const auto reader = open_bundle("d/p", files);
  CHECK(identical(reader->read("x").value(), two));
  CHECK(reader->find("s")->slices.size() == 2);
  CHECK(reader->read("s").ok());
}

TEST_CASE("any byte but 0 of a bool is 1, in slices as in wholes") {
  MemoryFiles files;
  Tensor odd = Tensor::make(DataType::kBool, {2, 3});
  auto* bytes = static_cast<unsigned char*>(odd.mutable_raw());
  const unsigned char given[] = {0, 2, 1, 255, 0, 128};
  std::copy(std::begin(given), std::end(given), bytes);
  const auto writer = start("d/p", 1, files);
  check(writer->add("whole", odd));
  Tensor row = Tensor::make(DataType::kBool, {1, 3});
  for (const int i : {0, 1}) {
    std::copy_n(given + 3 * i, 3,
                static_cast<unsigned char*>(row.mutable_raw()));
    check(writer->add_slice("parts", {2, 3}, TensorSlice({{i, 1}, {}}), row));
  }
  check(writer->finish());
  check(writer->publish());
  const auto reader = open_bundle("d/p", files);
  const auto bytes_in = [](const Result<Tensor>& tensor) {
    const auto* raw = static_cast<const unsigned char*>(tensor->raw());
    return std::vector<int>(raw, raw + tensor->bytes());
  };
  for (const std::string name : {"whole", "parts"}) {
    CAPTURE(name);
    CHECK(bytes_in(reader->read(name)) == std::vector{0, 1, 1, 1, 0, 1});
    const auto part = [&](std::string_view slice) {
      return bytes_in(
          reader->read_slice(name, TensorSlice::parse(slice).value()));
    };
    // In one run, and in several.
    CHECK(part("1,1:-") == std::vector{1, 0, 1});
    CHECK(part("0,1:1,2") == std::vector{1, 1});
    CHECK(part("-:1,2") == std::vector{1, 1, 0, 1});
  }
}

TEST_CASE("a tensor that could not be read does not harm the next") {
  MemoryFiles files;
  save("p", small_tensors(), files, 2);
  const auto reader = open_bundle("p", files);
  const std::string path = "p.data-00000-of-00002";
  const std::string whole = files.contents()[path];
  files.put(path, whole.substr(0, 1));
  const auto readable = [&] {
    int count = 0;
    for (const auto& [name, wanted] : small_tensors()) {
      const auto tensor = reader->read(name);
      if (!tensor.ok()) continue;
      CHECK(identical(*tensor, wanted));
      ++count;
    }
    return count;
  };
  const int first = readable();
  CHECK(first < 3);
  CHECK(readable() == first);
  CHECK_FALSE(reader->read("none").ok());
  CHECK(readable() == first);
}

TEST_CASE("whenever the process or the machine ends, there is a checkpoint") {
  for (const bool power : {false, true}) {
    for (int failing = 0;; ++failing) {
      MemoryFiles files;
      save("d/old", small_tensors(), files, 2);
      files.recover();
      files.failing = failing;
      files.is_crash = true;
      const bool saved = try_save("d/new", other_tensors(), files, 2).ok();
      files.recover();
      if (power) files.lose_power();
      CHECK(is_whole(files, "d/old", small_tensors()));
      // What can be seen of the new one is all of it.
      if (saved || files.exists("d/new.index"))
        CHECK(is_whole(files, "d/new", other_tensors()));
      if (saved) break;
    }
  }
}

TEST_CASE("a checkpoint in the place of another is one of them, or none") {
  for (const bool power : {false, true}) {
    for (int failing = 0;; ++failing) {
      MemoryFiles files;
      save("d/p", small_tensors(), files, 2);
      files.recover();
      files.failing = failing;
      files.is_crash = true;
      const bool saved = try_save("d/p", other_tensors(), files, 2).ok();
      files.recover();
      if (power) files.lose_power();
      const bool is_old = is_whole(files, "d/p", small_tensors());
      const bool is_new = is_whole(files, "d/p", other_tensors());
      CHECK((is_old || is_new || !files.exists("d/p.index")));
      if (saved) {
        CHECK(is_new);
        break;
      }
    }
  }
}

TEST_CASE("a save for which memory is short fails, and leaves what was there") {
  MemoryFiles files;
  save("d/old", small_tensors(), files, 2);
  for (int64_t k = 1;; ++k) {
    bool is_saved = false;
    FailAllocation fail(k);
    try {
      is_saved = try_save("d/new", other_tensors(), files, 2).ok();
    } catch (const std::bad_alloc&) {
    }
    fail.stop();
    CHECK(is_whole(files, "d/old", small_tensors()));
    if (is_saved) CHECK(is_whole(files, "d/new", other_tensors()));
    if (!fail.failed()) {
      CHECK(is_saved);
      CHECK(k > 20);
      break;
    }
  }
}

}  // namespace
}  // namespace tagflow::checkpoint
