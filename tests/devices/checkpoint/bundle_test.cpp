// BundleReader and BundleWriter, by what TensorFlow writes and by each other.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

#include "devices/checkpoint/bundle_merge.h"
#include "devices/checkpoint/bundle_reader.h"
#include "devices/checkpoint/bundle_writer.h"
#include "devices/checkpoint/byte_reader.h"
#include "devices/checkpoint/crc32c.h"
#include "devices/checkpoint/table.h"
#include "graph/proto/checkpoint.pb.h"
#include "tests/devices/checkpoint/examples.h"
#include "tests/devices/checkpoint/memory_files.h"

namespace tagflow::checkpoint {
namespace {

using Named = std::vector<std::pair<std::string, Tensor>>;

void check(const Status& status) {
  INFO(status.to_string());
  REQUIRE(status.ok());
}

std::string text_of(const Status& status) { return status.to_string(); }
template <class T>
std::string text_of(const Result<T>& result) {
  return result.status().to_string();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::unique_ptr<BundleReader> open_bundle(const std::string& prefix,
                                          FileSystem& files) {
  auto reader = BundleReader::open(prefix, files);
  INFO(text_of(reader));
  REQUIRE(reader.ok());
  return std::move(*reader);
}

std::unique_ptr<BundleReader> recorded(std::string_view name) {
  return open_bundle(recorded_path(name), local_files());
}

std::unique_ptr<BundleWriter> start(const std::string& prefix, int shards,
                                    FileSystem& files) {
  auto writer = BundleWriter::create(prefix, shards, {&files, true});
  REQUIRE(writer.ok());
  return std::move(*writer);
}

void save(const std::string& prefix, const Named& tensors, FileSystem& files,
          int shards = 1) {
  const auto writer = start(prefix, shards, files);
  for (const auto& [name, tensor] : tensors) check(writer->add(name, tensor));
  check(writer->finish());
  check(writer->publish());
}

void check_tensor(const BundleReader& reader, std::string_view name,
                  const Tensor& wanted) {
  const auto tensor = reader.read(name);
  INFO(name, ": ", text_of(tensor));
  REQUIRE(tensor.ok());
  CHECK(identical(*tensor, wanted));
}

TensorSlice slice(std::string_view text) {
  return TensorSlice::parse(text).value();
}

// The files of record_checkpoints.py.
Named recorded_types() {
  Named tensors;
  for (const DataType dtype : example_types())
    tensors.emplace_back("of/" + numpy_name(dtype), example(dtype, {2, 3}));
  return tensors;
}

Named recorded_shapes() {
  return {{"scalar", example(DataType::kFloat, {})},
          {"empty", example(DataType::kInt32, {0, 3})},
          {"no_strings", example(DataType::kString, {0})},
          {"one_string", example(DataType::kString, {})},
          {"deep", example(DataType::kInt8, {1, 2, 1, 3, 1})}};
}

Named recorded_names() {
  Named tensors;
  for (int i = 0; i < 50; ++i)
    tensors.emplace_back(fmt::format("layer_{}/unit_{}", i / 10, i % 10),
                         example(DataType::kUInt8, {i}));
  return tensors;
}

// Rows `begin` to `end` and columns likewise of a matrix of strings or floats.
Tensor part_of(const Tensor& whole, int64_t row, int64_t rows, int64_t column,
               int64_t columns) {
  Tensor part = Tensor::make(whole.dtype(), {rows, columns});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t from = (row + r) * whole.dim(1) + column + c;
      const int64_t to = r * columns + c;
      if (whole.dtype() == DataType::kString)
        part.mutable_data<std::string>()[to] = whole.data<std::string>()[from];
      else
        part.mutable_data<float>()[to] = whole.data<float>()[from];
    }
  return part;
}

void add_slice(BundleWriter& writer, std::string_view name, const Tensor& whole,
               int64_t row, int64_t rows, int64_t column, int64_t columns,
               std::string_view spec) {
  check(writer.add_slice(name, whole.shape(), slice(spec),
                         part_of(whole, row, rows, column, columns)));
}

const Tensor kRows = example(DataType::kFloat, {6, 4});
const Tensor kBoxes = example(DataType::kString, {4, 5});

// As record_checkpoints.py does.
void save_slices(MemoryFiles& files) {
  const auto first = start("d/part_0", 1, files);
  add_slice(*first, "rows", kRows, 0, 1, 0, 4, "0,1:-");
  add_slice(*first, "rows", kRows, 3, 3, 0, 4, "3,3:0,4");
  add_slice(*first, "boxes", kBoxes, 0, 3, 0, 2, "0,3:0,2");
  add_slice(*first, "whole", kRows, 0, 6, 0, 4, "-:-");
  check(first->finish());
  check(first->publish());
  const auto second = start("d/part_1", 1, files);
  add_slice(*second, "rows", kRows, 1, 2, 0, 4, "1,2:-");
  add_slice(*second, "boxes", kBoxes, 0, 3, 2, 3, "0,3:2,3");
  add_slice(*second, "boxes", kBoxes, 3, 1, 0, 2, "3,1:0,2");
  add_slice(*second, "boxes", kBoxes, 3, 1, 2, 3, "3,1:2,3");
  check(second->finish());
  check(second->publish());
}

TEST_CASE("what TensorFlow writes is read") {
  const std::pair<std::string, Named> bundles[] = {
      {"types", recorded_types()},
      {"shapes", recorded_shapes()},
      {"names", recorded_names()}};
  for (const auto& [name, tensors] : bundles) {
    const auto reader = recorded(name);
    CHECK(reader->num_shards() == 1);
    CHECK(reader->tensors().size() == tensors.size());
    check(reader->check_complete());
    for (const auto& [key, tensor] : tensors)
      check_tensor(*reader, key, tensor);
  }
}

TEST_CASE("what is written is what TensorFlow writes, byte by byte") {
  MemoryFiles files;
  save("d/types", recorded_types(), files);
  save("d/shapes", recorded_shapes(), files);
  save("d/names", recorded_names(), files);
  for (const std::string name : {"types", "shapes", "names"})
    for (const std::string end : {".index", ".data-00000-of-00001"})
      CHECK(files.contents()["d/" + name + end] ==
            bytes_of(recorded_path(name + end)));
}

TEST_CASE("slices are merged as TensorFlow merges them, byte by byte") {
  MemoryFiles files;
  save_slices(files);
  const std::string sources[] = {"d/part_0", "d/part_1"};
  auto merge = BundleMerge::prepare(sources, "d/sliced", {{&files, true}});
  REQUIRE(merge.ok());
  check(merge->publish());
  CHECK(files.contents().size() == 3);
  for (const std::string end :
       {".index", ".data-00000-of-00002", ".data-00001-of-00002"})
    CHECK(files.contents()["d/sliced" + end] ==
          bytes_of(recorded_path("sliced" + end)));
}

TEST_CASE("tensors are put together of slices, and slices taken of both") {
  const auto reader = recorded("sliced");
  CHECK(reader->num_shards() == 2);
  REQUIRE(reader->tensors().size() == 3);
  CHECK(reader->find("rows")->is_sliced());
  check(reader->check_complete());
  check_tensor(*reader, "rows", kRows);
  check_tensor(*reader, "boxes", kBoxes);
  check_tensor(*reader, "whole", kRows);
  for (const std::string name : {"rows", "whole", "boxes"}) {
    const Tensor& whole = name == "boxes" ? kBoxes : kRows;
    for (int64_t row = 0; row < 4; ++row)
      for (int64_t column = 0; column < 4; ++column) {
        const auto part = reader->read_slice(
            name, TensorSlice({{row, 4 - row}, {column, 4 - column}}));
        INFO(text_of(part));
        REQUIRE(part.ok());
        CHECK(
            identical(*part, part_of(whole, row, 4 - row, column, 4 - column)));
      }
  }
  CHECK(text_of(reader->read_slice("rows", slice("5,2:-"))) ==
        fmt::format("InvalidArgument: [checkpoint] tensor \"rows\" of \"{}\": "
                    "slice 5,2:- is not within a tensor of shape [6,4]",
                    recorded_path("sliced")));
}

TEST_CASE("a tensor of which slices are missing says how much is there") {
  MemoryFiles files;
  save_slices(files);
  const auto reader = open_bundle("d/part_0", files);
  CHECK(text_of(reader->read("rows")) ==
        "InvalidArgument: [checkpoint] tensor \"rows\" of \"d/part_0\": its "
        "slices have 16 of the 24 elements of slice 0,6:0,4");
  CHECK(reader->read_slice("rows", slice("3,2:1,2")).ok());
}

TEST_CASE("a tensor that is not there is NotFound, with what is") {
  const auto reader = recorded("shapes");
  CHECK(text_of(reader->read("scalr")) ==
        fmt::format("NotFound: [checkpoint] there is no tensor \"scalr\" in "
                    "\"{}\", which has 5 tensors; did you mean \"scalar\"?",
                    recorded_path("shapes")));
  CHECK(contains(text_of(reader->read("quite/another")),
                 "5 tensors; the first is \"deep\""));
  CHECK(text_of(BundleReader::open("/nowhere/x")) ==
        "NotFound: [checkpoint] there is no checkpoint \"/nowhere/x\": no file "
        "\"/nowhere/x.index\"");
}

TEST_CASE("a V1 checkpoint is refused by name") {
  CHECK(text_of(BundleReader::open(recorded_path("v1"))) ==
        fmt::format("Unimplemented: [checkpoint] \"{}\" is a V1 checkpoint, "
                    "which cannot be read; save it with V2",
                    recorded_path("v1")));
}

TEST_CASE("what cannot be saved is refused") {
  MemoryFiles files;
  const auto writer = start("d/p", 1, files);
  const Tensor x = Tensor::vector<float>({1, 2});
  check(writer->add("x", x));
  CHECK(text_of(writer->add("x", x)) ==
        "InvalidArgument: [checkpoint] tensor \"x\" is added twice");
  CHECK(contains(text_of(writer->add("", x)), "is no name of a tensor"));
  CHECK(contains(text_of(writer->add(std::string(1, '\0'), x)),
                 "is no name of a tensor"));
  CHECK(text_of(writer->add("h", Tensor::make(DataType::kResource, {}))) ==
        "Unimplemented: [checkpoint] tensor \"h\" is resource[], which cannot "
        "be saved");
  check(writer->add_slice("s", {4}, slice("0,2"), x));
  CHECK(text_of(writer->add_slice("s", {4}, slice("1,2"), x)) ==
        "InvalidArgument: [checkpoint] slice 1,2 of tensor \"s\": it overlaps "
        "with slice 0,2");
  CHECK(contains(text_of(writer->add_slice("s", {5}, slice("2,2"), x)),
                 "the tensor is float[4], not float[5]"));
  CHECK(contains(text_of(writer->add_slice("s", {4}, slice("2,1"), x)),
                 "it is to be [1], not [2]"));
  CHECK(contains(text_of(writer->add_slice("s", {4}, slice("3,2"), x)),
                 "is not within a tensor"));
  CHECK(contains(text_of(writer->add_slice("x", {4}, slice("2,2"), x)),
                 "the tensor is added as a whole"));
  for (const std::string prefix : {"", "d/"})
    CHECK(contains(text_of(BundleWriter::create(prefix, 1, {&files, true})),
                   "is no prefix of file names"));
}

TEST_CASE("checkpoints that cannot be merged are refused") {
  MemoryFiles files;
  save("a", {{"x", example(DataType::kFloat, {2})}}, files);
  save("b", {{"x", example(DataType::kFloat, {2})}}, files);
  const std::string same[] = {"a", "b"};
  CHECK(text_of(BundleMerge::prepare(same, "c", {{&files, true}})) ==
        "InvalidArgument: [checkpoint] tensor \"x\" of \"b\" is in another "
        "checkpoint, too");
  const std::string missing[] = {"a", "nowhere"};
  CHECK(contains(text_of(BundleMerge::prepare(missing, "c", {{&files, true}})),
                 "NotFound: [checkpoint] there is no checkpoint \"nowhere\""));
  CHECK(BundleMerge::prepare(missing, "c", {{&files, true}, true}).ok());
  const std::string none[] = {"nowhere"};
  CHECK(
      contains(text_of(BundleMerge::prepare(none, "c", {{&files, true}, true})),
               "there is none of the 1 checkpoints"));
  CHECK(files.contents().size() == 4);  // temporary files are gone
}

// --- Round trips -------------------------------------------------------------

Tensor random_tensor() {
  const auto types = example_types();
  const DataType dtype = types[*rc::gen::inRange<size_t>(0, types.size())];
  Shape shape;
  const int rank = *rc::gen::inRange(0, 4);
  for (int d = 0; d < rank; ++d)
    shape.add_dim(*rc::gen::inRange<int64_t>(0, 6));
  return example(dtype, shape);
}

TEST_CASE("any tensors survive, in any number of shards") {
  CHECK(rc::check([] {
    std::map<std::string, Tensor> tensors;
    const int count = *rc::gen::inRange(0, 8);
    for (int i = 0; i < count; ++i)
      tensors.insert_or_assign("n" + *rc::gen::arbitrary<std::string>(),
                               random_tensor());
    MemoryFiles files;
    files.most_per_write = *rc::gen::element<size_t>(1, 7, SIZE_MAX);
    const int shards = *rc::gen::inRange(1, 4);
    save("d/p", Named(tensors.begin(), tensors.end()), files, shards);
    RC_ASSERT(files.contents().size() == size_t(shards) + 1);
    const auto reader = open_bundle("d/p", files);
    RC_ASSERT(reader->tensors().size() == tensors.size());
    RC_ASSERT(reader->check_complete().ok());
    for (const auto& [name, tensor] : tensors) {
      const auto again = reader->read(name);
      RC_ASSERT(again.ok());
      RC_ASSERT(identical(*again, tensor));
    }
  }));
}

TEST_CASE("any partition is put together, and any slice of it read") {
  CHECK(rc::check([] {
    const auto types = example_types();
    const DataType dtype = types[*rc::gen::inRange<size_t>(0, types.size())];
    const int rank = *rc::gen::inRange(1, 4);
    Shape shape;
    for (int d = 0; d < rank; ++d)
      shape.add_dim(*rc::gen::inRange<int64_t>(1, 6));
    const Tensor whole = example(dtype, shape);
    // Cuts each dimension in two, maybe.
    std::vector<TensorSlice> parts = {TensorSlice()};
    for (int d = 0; d < rank; ++d) {
      const auto cut = *rc::gen::inRange<int64_t>(0, shape.dim(d));
      std::vector<TensorSlice> next;
      for (const TensorSlice& part : parts) {
        std::vector<Extent> extents(part.extents().begin(),
                                    part.extents().end());
        extents.push_back(cut == 0 ? Extent{} : Extent{0, cut});
        next.emplace_back(extents);
        if (cut == 0) continue;
        extents.back() = {cut, shape.dim(d) - cut};
        next.emplace_back(extents);
      }
      parts = std::move(next);
    }
    MemoryFiles files;
    save("d/whole", {{"t", whole}}, files);
    const auto source = open_bundle("d/whole", files);
    const auto writer = start("d/parts", 2, files);
    for (const TensorSlice& part : parts) {
      const auto tensor = source->read_slice("t", part);
      RC_ASSERT(tensor.ok());
      RC_ASSERT(writer->add_slice("t", shape, part, *tensor).ok());
    }
    RC_ASSERT(writer->finish().ok() && writer->publish().ok());
    const auto reader = open_bundle("d/parts", files);
    RC_ASSERT(identical(reader->read("t").value(), whole));
    std::vector<Extent> extents;
    for (int d = 0; d < rank; ++d) {
      const auto from = *rc::gen::inRange<int64_t>(0, shape.dim(d));
      extents.push_back(
          {from, *rc::gen::inRange<int64_t>(1, shape.dim(d) - from + 1)});
    }
    const TensorSlice any(extents);
    RC_ASSERT(identical(reader->read_slice("t", any).value(),
                        source->read_slice("t", any).value()));
  }));
}

// --- Damage ------------------------------------------------------------------

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
                 "is to end at 4294967296"));
  CHECK(contains(error_of(entry_proto({1}, 97, 4)), "is to end at 101"));
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

// --- Faults ------------------------------------------------------------------

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

TEST_CASE("whichever write fails, what is left is the checkpoint before") {
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

}  // namespace
}  // namespace tagflow::checkpoint
