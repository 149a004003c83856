// BundleReader and BundleWriter, by what TensorFlow writes and by each other.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

#include "devices/files/bundle_merge.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"
#include "devices/files/byte_reader.h"
#include "devices/files/crc32c.h"
#include "devices/files/table.h"
#include "graph/proto/checkpoint.pb.h"
#include "tests/devices/files/bundles.h"
#include "tests/devices/files/examples.h"
#include "tests/devices/files/memory_files.h"

namespace tagflow::checkpoint {
namespace {

std::unique_ptr<BundleReader> recorded(std::string_view name) {
  return open_bundle(recorded_path(name), local_files());
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

TEST_CASE("a bundle that TensorFlow has written is read") {
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

TEST_CASE("a bundle has the same bytes as TensorFlow's") {
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

TEST_CASE("a bundle gives empty slices of a tensor without elements") {
  MemoryFiles files;
  const Shape shape = {0, int64_t{1} << 40};
  save("d/p",
       {{"numbers", Tensor::make(DataType::kFloat, shape)},
        {"strings", Tensor::make(DataType::kString, shape)}},
       files);
  const auto reader = open_bundle("d/p", files);
  for (const std::string name : {"numbers", "strings"}) {
    const auto part = reader->read_slice(name, slice("-:1000,1000000"));
    INFO(text_of(part));
    REQUIRE(part.ok());
    CHECK(part->shape() == Shape({0, 1'000'000}));
  }
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

TEST_CASE("a bundle's missing tensor is NotFound, with the nearest names") {
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

TEST_CASE("a bundle refuses tensors that cannot be saved") {
  MemoryFiles files;
  const auto writer = start("d/p", 1, files);
  const Tensor x = Tensor::vector<float>({1, 2});
  check(writer->add("x", x));
  CHECK(text_of(writer->add("x", x)) ==
        "InvalidArgument: [checkpoint] tensor \"x\" is added twice");
  CHECK(contains(text_of(writer->add("", x)), "is not a name of a tensor"));
  CHECK(contains(text_of(writer->add(std::string(1, '\0'), x)),
                 "is not a name of a tensor"));
  CHECK(text_of(writer->add("h", Tensor::make(DataType::kResource, {}))) ==
        "Unimplemented: [checkpoint] tensor \"h\" is resource[], which cannot "
        "be saved");
  check(writer->add_slice("s", {4}, slice("0,2"), x));
  CHECK(contains(text_of(writer->add_slice("s", {4}, slice("0,2"), x)),
                 "it is added twice"));
  CHECK(contains(text_of(writer->add_slice("s", {5}, slice("2,2"), x)),
                 "the tensor is float[4], not float[5]"));
  CHECK(contains(text_of(writer->add_slice("s", {4}, slice("2,1"), x)),
                 "its shape must be [1], not [2]"));
  CHECK(contains(text_of(writer->add_slice("s", {4}, slice("3,2"), x)),
                 "is not within a tensor"));
  CHECK(contains(text_of(writer->add_slice("x", {4}, slice("2,2"), x)),
                 "the tensor is added as a whole"));
  check(writer->add_slice("s", {4}, slice("1,2"), x));
  CHECK(text_of(writer->finish()) ==
        "InvalidArgument: [checkpoint] tensor \"s\": slices 0,2 and 1,2 "
        "overlap");
  for (const std::string prefix : {"", "d/"})
    CHECK(contains(text_of(BundleWriter::create(prefix, 1, {&files, true})),
                   "is not a prefix of file names"));
}

TEST_CASE("checkpoints that cannot be merged are refused") {
  MemoryFiles files;
  save("a", {{"x", example(DataType::kFloat, {2})}}, files);
  save("b", {{"x", example(DataType::kFloat, {2})}}, files);
  const std::string same[] = {"a", "b"};
  CHECK(text_of(BundleMerge::prepare(same, "c", {{&files, true}})) ==
        "InvalidArgument: [checkpoint] tensor \"x\" of \"b\" is in another "
        "checkpoint, too");
  const auto save_slice = [&](const std::string& prefix, const char* where) {
    const auto writer = start(prefix, 1, files);
    check(writer->add_slice("s", {4}, slice(where),
                            example(DataType::kFloat, {2})));
    check(writer->finish());
    check(writer->publish());
  };
  save_slice("s1", "1,2");
  save_slice("s2", "0,2");
  const std::string overlapping[] = {"s1", "s2"};
  CHECK(text_of(BundleMerge::prepare(overlapping, "c", {{&files, true}})) ==
        "InvalidArgument: [checkpoint] tensor \"s\": slices 0,2 and 1,2 "
        "overlap");
  const std::string missing[] = {"a", "nowhere"};
  CHECK(contains(text_of(BundleMerge::prepare(missing, "c", {{&files, true}})),
                 "NotFound: [checkpoint] there is no checkpoint \"nowhere\""));
  CHECK(BundleMerge::prepare(missing, "c", {{&files, true}, true}).ok());
  const std::string none[] = {"nowhere"};
  CHECK(
      contains(text_of(BundleMerge::prepare(none, "c", {{&files, true}, true})),
               "none of the 1 checkpoints"));
  CHECK(files.contents().size() == 8);  // temporary files are gone
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

TEST_CASE("a bundle keeps any tensors, in any number of shards") {
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

}  // namespace
}  // namespace tagflow::checkpoint
