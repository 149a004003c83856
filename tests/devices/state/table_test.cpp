// Kernels of tables: lookups, changes and errors.
#include "devices/state/table.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>

#include "devices/kernels/table/table_file.h"
#include "tests/devices/state/calls.h"
#include "tests/failing_new.h"
#include "tests/temp_path.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

using Texts = std::initializer_list<std::string>;

Tensor texts(Texts values) { return Tensor::vector<std::string>(values); }
Tensor longs(std::initializer_list<int64_t> values) {
  return Tensor::vector<int64_t>(values);
}

struct TestedTable {
  TestedTable(std::string_view op, DataType key, DataType value,
              AttrMap attrs = {}, std::vector<Tensor> inputs = {}) {
    attrs.emplace("key_dtype", key);
    attrs.emplace("value_dtype", value);
    attrs.emplace("shared_name", "t");
    Result<Outputs> made = call_op(state, op, inputs, std::move(attrs));
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    handle = (*made)[0];
  }

  Result<Outputs> find(const Tensor& keys, const Tensor& defaults) {
    return call_op(state, "LookupTableFindV2", {handle, keys, defaults});
  }
  Status change(std::string_view op, std::vector<Tensor> inputs) {
    inputs.insert(inputs.begin(), handle);
    return call_op(state, op, inputs).status();
  }
  Status insert(const Tensor& keys, const Tensor& values) {
    return change("LookupTableInsertV2", {keys, values});
  }
  int64_t size() {
    return (*call_op(state, "LookupTableSizeV2", {handle}))[0]
        .scalar_value<int64_t>();
  }
  Result<Outputs> export_all(DataType key, DataType value) {
    return call_op(state, "LookupTableExportV2", {handle},
                   {{"Tkeys", key}, {"Tvalues", value}});
  }

  ResourceManager state;
  Tensor handle;
};

TestedTable fixed() {
  return TestedTable("HashTableV2", DataType::kString, DataType::kInt64);
}

void write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a table that is filled once gives values and defaults") {
  TestedTable table = fixed();
  const Tensor none = Tensor::scalar<int64_t>(-1);
  expect_error(table.find(texts({"a"}), none), Code::kFailedPrecondition,
               "[LookupTableFindV2] table \"t\" is not initialized");
  CHECK(table.size() == 0);
  expect_error(table.export_all(DataType::kString, DataType::kInt64),
               Code::kAborted, "is not initialized");
  expect_error(
      table.change("InitializeTableV2", {texts({"a", "a"}), longs({1, 2})}),
      Code::kFailedPrecondition,
      "key \"a\" of table \"t\" is there twice, with different values");
  CHECK(table.size() == 0);
  CHECK(table
            .change("InitializeTableV2",
                    {texts({"a", "b", "a"}), longs({1, 2, 1})})
            .ok());
  CHECK(table.size() == 2);
  expect_close(
      table.find(Tensor::of<std::string>({2, 2}, {"a", "x", "b", "a"}), none),
      Tensor::of<int64_t>({2, 2}, {1, -1, 2, 1}));
  expect_error(table.change("InitializeTableV2", {texts({"c"}), longs({1})}),
               Code::kFailedPrecondition, "is already initialized");
  for (const char* op : {"LookupTableInsertV2"})
    expect_error(table.change(op, {texts({"a"}), longs({1})}),
                 Code::kUnimplemented,
                 "is a HashTable of string -> int64, which cannot be changed");
  expect_error(table.change("LookupTableRemoveV2", {texts({"a"})}),
               Code::kUnimplemented, "cannot be changed");
}

TEST_CASE("a mutable table is changed, and has defaults for each key") {
  TestedTable table("MutableHashTableV2", DataType::kString, DataType::kInt64);
  CHECK(table.insert(texts({"a", "b", "a"}), longs({1, 2, 3})).ok());
  expect_close(table.find(texts({"a", "q", "r"}), longs({7, 8, 9})),
               longs({3, 8, 9}));
  expect_error(table.find(texts({"a", "q", "r"}), longs({7, 8})),
               Code::kInvalidArgument,
               "default_value must be of shape [], or [3], for table \"t\", "
               "not int64[2]");
  CHECK(table.change("LookupTableRemoveV2", {texts({"a", "zz"})}).ok());
  CHECK(table.size() == 1);
  CHECK(table.change("LookupTableImportV2", {texts({"u"}), longs({5})}).ok());
  const auto all = table.export_all(DataType::kString, DataType::kInt64);
  REQUIRE(all.ok());
  expect_close((*all)[0], texts({"u"}));
  expect_close((*all)[1], longs({5}));
}

TEST_CASE("a change that a table refuses leaves its entries as they were") {
  for (const bool is_dense : {false, true}) {
    CAPTURE(is_dense);
    const Tensor empty = Tensor::scalar<int64_t>(-1);
    const Tensor deleted = Tensor::scalar<int64_t>(-2);
    TestedTable table =
        is_dense ? TestedTable("MutableDenseHashTableV2", DataType::kInt64,
                               DataType::kInt64, {}, {empty, deleted})
                 : TestedTable("MutableHashTableV2", DataType::kInt64,
                               DataType::kInt64);
    CHECK(table.insert(longs({1, 2}), longs({10, 20})).ok());
    const auto refused = [&](std::string_view op, const Tensor& keys,
                             const Tensor& values) {
      expect_error(table.change(op, {keys, values}), Code::kInvalidArgument,
                   "");
      CHECK(table.size() == 2);
      expect_close(table.find(longs({1, 2, 3}), Tensor::scalar<int64_t>(0)),
                   longs({10, 20, 0}));
    };
    for (const std::string op :
         {"LookupTableInsertV2", "LookupTableImportV2"}) {
      CAPTURE(op);
      refused(op, longs({3, 1}), longs({30}));
      refused(op, texts({"3"}), longs({30}));
      refused(op, longs({3}), texts({"30"}));
    }
    // An import passes over reserved keys: TensorFlow exports unused slots too.
    if (is_dense)
      for (const int64_t reserved : {-1, -2})
        refused("LookupTableInsertV2", longs({3, reserved}), longs({30, 40}));
    expect_error(table.change("LookupTableRemoveV2", {texts({"1"})}),
                 Code::kInvalidArgument, "");
    if (is_dense)
      expect_error(table.change("LookupTableRemoveV2", {longs({1, -1})}),
                   Code::kInvalidArgument, "");
    CHECK(table.size() == 2);
    // It still takes what is right.
    CHECK(table.change("LookupTableImportV2", {longs({3}), longs({30})}).ok());
    CHECK(table.size() == 1);
    expect_close(table.find(longs({1, 3}), Tensor::scalar<int64_t>(0)),
                 longs({0, 30}));
  }
}

TEST_CASE("a change of a table that comes too late is taken back") {
  for (const bool of_texts : {false, true}) {
    CAPTURE(of_texts);
    const DataType key = of_texts ? DataType::kString : DataType::kInt64;
    const auto keys = [&](const std::vector<int64_t>& numbers) {
      if (!of_texts)
        return Tensor::of<int64_t>({int64_t(numbers.size())}, numbers);
      std::vector<std::string> words;
      for (const int64_t number : numbers)
        words.push_back(fmt::format("a word that is long, number {}", number));
      return Tensor::of<std::string>({int64_t(words.size())}, words);
    };
    for (const bool is_full : {false, true}) {
      CAPTURE(is_full);
      TestedTable table("MutableHashTableV2", key, key);
      const Tensor first = is_full ? keys({1, 2, 3, 4}) : keys({});
      const Tensor values = is_full ? keys({10, 20, 30, 40}) : keys({});
      CHECK(table.insert(first, values).ok());
      // The step was cancelled, or has been answered.
      for (const bool is_answered : {false, true}) {
        CAPTURE(is_answered);
        const std::atomic<bool> cancelled = !is_answered;
        CommitGate gate([] {});
        StepInfo step;
        step.state = &table.state;
        step.cancelled = &cancelled;
        step.commits = &gate;
        if (is_answered) gate.close();
        const auto too_late = [&](std::string_view op,
                                  std::vector<Tensor> inputs) {
          CAPTURE(op);
          inputs.insert(inputs.begin(), table.handle);
          CHECK(run_op(op, inputs, {}, &step).status().code() ==
                Code::kCancelled);
          const auto all = table.export_all(key, key);
          REQUIRE(all.ok());
          expect_close((*all)[0], first);
          expect_close((*all)[1], values);
          expect_close(table.find(keys({3, 5}), keys({0, 0})),
                       keys({is_full ? 30 : 0, 0}));
        };
        // A long one, of keys that are old, new, and there twice.
        std::vector<int64_t> many(1000);
        for (size_t i = 0; i < many.size(); ++i)
          many[i] = int64_t(i * 7 % 600 + 2);
        too_late("LookupTableInsertV2", {keys(many), keys(many)});
        if (is_answered)
          too_late("LookupTableInsertV2",
                   {keys({5, 2, 6, 2}), keys({50, 21, 60, 22})});
        too_late("LookupTableRemoveV2", {keys({4, 1, 9, 3})});
        too_late("LookupTableImportV2", {keys({3, 5}), keys({31, 50})});
      }
      CHECK(table.insert(keys({2, 5}), keys({22, 50})).ok());
      expect_close(table.find(keys({2, 5}), keys({0, 0})), keys({22, 50}));
    }
  }
}

TEST_CASE("a table whose filling comes too late can be filled after that") {
  TestedTable table = fixed();
  CommitGate gate([] {});
  StepInfo step;
  step.state = &table.state;
  step.commits = &gate;
  gate.close();
  CHECK(run_op("InitializeTableV2",
               {table.handle, texts({"a", "b"}), longs({1, 2})}, {}, &step)
            .status()
            .code() == Code::kCancelled);
  CHECK(table.size() == 0);
  CHECK(table.change("InitializeTableV2", {texts({"c"}), longs({3})}).ok());
  CHECK(table.size() == 1);
}

TEST_CASE("a table whose filling was refused can be filled after that") {
  TestedTable table = fixed();
  for (const auto& [keys, values] :
       {std::pair(texts({"a", "a"}), longs({1, 2})),
        std::pair(texts({"a"}), longs({1, 2})),
        std::pair(longs({1}), longs({1}))}) {
    CHECK_FALSE(table.change("InitializeTableV2", {keys, values}).ok());
    expect_error(table.find(texts({"a"}), Tensor::scalar<int64_t>(0)),
                 Code::kFailedPrecondition, "is not initialized");
    CHECK(table.size() == 0);
  }
  CHECK(table.change("InitializeTableV2", {texts({"b"}), longs({5})}).ok());
  // The same entries may come again; others change nothing.
  for (const char* op : {"InitializeTableV2", "LookupTableImportV2"})
    CHECK(table.change(op, {texts({"b"}), longs({5})}).ok());
  for (const char* op : {"InitializeTableV2", "LookupTableImportV2"})
    CHECK_FALSE(table.change(op, {texts({"b", "c"}), longs({6, 7})}).ok());
  CHECK(table.size() == 1);
  expect_close(table.find(texts({"b", "c"}), Tensor::scalar<int64_t>(0)),
               longs({5, 0}));
}

TEST_CASE("an insertion for which there is no memory keeps what was there") {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    TestedTable table("MutableHashTableV2", DataType::kInt64, DataType::kInt64);
    CHECK(table.insert(longs({1, 2}), longs({10, 20})).ok());
    Tensor keys = Tensor::make(DataType::kInt64, {40});
    for (int64_t i = 0; i < 40; ++i) keys.mutable_data<int64_t>()[i] = 100 + i;
    const TestedOp insert(
        "LookupTableInsertV2",
        {DataType::kResource, DataType::kInt64, DataType::kInt64});
    Call call(insert, {table.handle, keys, keys});
    FailAllocation fail(k);
    call.start();
    fail.stop();
    expect_close(table.find(longs({1, 2}), Tensor::scalar<int64_t>(0)),
                 longs({10, 20}));
    if (call.status().ok()) {
      CHECK(table.size() == 42);
      if (!fail.failed()) break;
    }
    // It can be repeated.
    CHECK(table.insert(keys, keys).ok());
    CHECK(table.size() == 42);
    expect_close(table.find(longs({1, 100, 139}), Tensor::scalar<int64_t>(0)),
                 longs({10, 100, 139}));
  }
}

TEST_CASE("a table that could not be read from its file can be filled again") {
  const std::string path = testing::temp_path("vocabulary_again").string();
  TestedTable table = fixed();
  const auto fill = [&] {
    return call_op(table.state, "InitializeTableFromTextFileV2",
                   {table.handle, Tensor::scalar(path)},
                   {{"key_index", -2}, {"value_index", -1}})
        .status();
  };
  write(path, "a\nb\na\n");
  CHECK_FALSE(fill().ok());
  CHECK(table.size() == 0);
  std::remove(path.c_str());
  CHECK(fill().code() == Code::kNotFound);
  write(path, "c\nd\n");
  CHECK(fill().ok());
  expect_close(table.find(texts({"a", "d"}), Tensor::scalar<int64_t>(-1)),
               longs({-1, 1}));
  std::remove(path.c_str());
}

TEST_CASE("a table may have vectors as values, a dense one tensors as keys") {
  TestedTable vectors("MutableHashTableOfTensorsV2", DataType::kString,
                      DataType::kInt64, {{"value_shape", PartialShape({2})}});
  CHECK(
      vectors
          .insert(texts({"a", "b"}), Tensor::of<int64_t>({2, 2}, {1, 2, 3, 4}))
          .ok());
  expect_close(vectors.find(texts({"b", "z"}), longs({-1, -2})),
               Tensor::of<int64_t>({2, 2}, {3, 4, -1, -2}));
  expect_error(vectors.insert(texts({"a"}), longs({1})), Code::kInvalidArgument,
               "values must be of shape [1,2] for keys string[1] of table "
               "\"t\", not int64[1]");

  const Tensor empty = longs({0, 0}), deleted = longs({-1, -1});
  TestedTable dense("MutableDenseHashTableV2", DataType::kInt64,
                    DataType::kFloat, {}, {empty, deleted});
  CHECK(dense
            .insert(Tensor::of<int64_t>({3, 2}, {1, 2, 3, 4, 5, 6}),
                    Tensor::vector<float>({1, 2, 3}))
            .ok());
  CHECK(
      dense.change("LookupTableRemoveV2", {Tensor::of<int64_t>({1, 2}, {1, 2})})
          .ok());
  expect_close(dense.find(Tensor::of<int64_t>({2, 2}, {5, 6, 1, 2}),
                          Tensor::scalar(-1.0f)),
               Tensor::vector<float>({3, -1}));
  expect_error(
      dense.find(Tensor::of<int64_t>({1, 2}, {0, 0}), Tensor::scalar(-1.0f)),
      Code::kInvalidArgument,
      "key 0 is the empty_key of table \"t\", which is reserved");
  expect_error(dense.insert(Tensor::of<int64_t>({1, 2}, {-1, -1}),
                            Tensor::vector<float>({1})),
               Code::kInvalidArgument, "is the deleted_key");
  expect_error(dense.find(longs({1, 2, 3}), Tensor::scalar(-1.0f)),
               Code::kInvalidArgument,
               "have shape [2], but the shape of int64[3] does not end in it");
}

// TensorFlow exports the slots of such a table, used or not.
TEST_CASE("a dense table is imported from slots with reserved keys") {
  TestedTable dense("MutableDenseHashTableV2", DataType::kInt64,
                    DataType::kFloat, {}, {longs({0}), longs({-1})});
  CHECK(
      dense.insert(Tensor::of<int64_t>({1, 1}, {9}), Tensor::vector<float>({9}))
          .ok());
  CHECK(dense
            .change("LookupTableImportV2",
                    {Tensor::of<int64_t>({5, 1}, {0, 3, -1, 0, 5}),
                     Tensor::vector<float>({7, 30, 7, 7, 50})})
            .ok());
  CHECK(dense.size() == 2);
  expect_close(
      dense.find(Tensor::of<int64_t>({3, 1}, {5, 3, 9}), Tensor::scalar(-1.0f)),
      Tensor::vector<float>({50, 30, -1}));
}

TEST_CASE("a table agrees with a std::map after any changes") {
  for (const bool of_texts : {false, true}) {
    TestedTable table("MutableHashTableV2",
                      of_texts ? DataType::kString : DataType::kInt64,
                      DataType::kInt64);
    std::map<int64_t, int64_t> model;
    std::minstd_rand random(7);
    const auto key_of = [&](int64_t key) {
      return of_texts ? Tensor::vector<std::string>({std::to_string(key)})
                      : longs({key});
    };
    for (int i = 0; i < 5000; ++i) {
      const int64_t key = int64_t(random() % 300) - 150;
      switch (random() % 3) {
        case 0:
          CHECK(table.insert(key_of(key), longs({i})).ok());
          model[key] = i;
          break;
        case 1:
          CHECK(table.change("LookupTableRemoveV2", {key_of(key)}).ok());
          model.erase(key);
          break;
        default: {
          const auto it = model.find(key);
          expect_close(table.find(key_of(key), Tensor::scalar<int64_t>(-1)),
                       longs({it == model.end() ? -1 : it->second}));
        }
      }
    }
    CHECK(table.size() == int64_t(model.size()));
  }
}

TEST_CASE("tables that cannot be, and other uses than they are for") {
  ResourceManager state;
  const auto refused = [&](std::string_view op, AttrMap attrs,
                           std::string_view text,
                           std::vector<Tensor> inputs = {}) {
    attrs.emplace("key_dtype", DataType::kInt64);
    attrs.emplace("value_dtype", DataType::kInt64);
    expect_error(call_op(state, op, inputs, std::move(attrs)),
                 Code::kInvalidArgument, text);
  };
  refused("HashTableV2", {{"key_dtype", DataType::kVariant}},
          "a table cannot have keys of variant");
  // TensorFlow has no such tables either: 0.0 and -0.0 are equal and look
  // different, and NaN equals nothing.
  for (const DataType type :
       {DataType::kFloat, DataType::kDouble, DataType::kHalf,
        DataType::kBFloat16, DataType::kComplex64})
    for (const char* op :
         {"HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2"})
      refused(op, {{"key_dtype", type}},
              fmt::format("a table cannot have keys of {}, only integers, "
                          "booleans and strings",
                          dtype_name(type)));
  refused("MutableHashTableOfTensorsV2",
          {{"value_shape", PartialShape({2, 2})}},
          "values must be scalars or vectors, not [2,2]");
  const std::vector<Tensor> keys = {Tensor::scalar<int64_t>(0),
                                    Tensor::scalar<int64_t>(1)};
  refused("MutableDenseHashTableV2", {{"initial_num_buckets", 3}},
          "initial_num_buckets must be a power of two", keys);
  refused("MutableDenseHashTableV2", {{"max_load_factor", 1.5f}},
          "max_load_factor must be between 0 and 1", keys);
  refused("MutableDenseHashTableV2", {},
          "empty_key and deleted_key must not be equal", {keys[0], keys[0]});
  refused("MutableDenseHashTableV2", {},
          "empty_key and deleted_key differ in shape", {keys[0], longs({1})});

  TestedTable table = fixed();
  expect_error(table.find(longs({1}), Tensor::scalar<int64_t>(0)),
               Code::kInvalidArgument,
               "table \"t\" has keys of string, not of int64");
  expect_error(table.change("InitializeTableV2", {texts({"a"}), texts({"b"})}),
               Code::kInvalidArgument, "has values of int64, not of string");
  const auto other = call_op(table.state, "MutableHashTableV2", {},
                             {{"key_dtype", DataType::kString},
                              {"value_dtype", DataType::kInt64},
                              {"shared_name", "t"}});
  expect_error(other, Code::kInvalidArgument,
               "table \"t\" is a HashTable of string -> int64, but the node "
               "asks for a MutableHashTable of string -> int64");
}

TEST_CASE("tables without a name are their own, and a reset ends the others") {
  ResourceManager state;
  const AttrMap types{{"key_dtype", DataType::kInt64},
                      {"value_dtype", DataType::kInt64}};
  const auto one = call_op(state, "AnonymousMutableHashTable", {}, types);
  const auto two = call_op(state, "AnonymousMutableHashTable", {}, types);
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  CHECK(
      call_op(state, "LookupTableInsertV2", {(*one)[0], longs({1}), longs({2})})
          .ok());
  CHECK((*call_op(state, "LookupTableSizeV2", {(*two)[0]}))[0]
            .scalar_value<int64_t>() == 0);
  CHECK(state.size() == 0);

  TestedTable table("MutableHashTableV2", DataType::kInt64, DataType::kInt64);
  CHECK(table.insert(longs({1}), longs({2})).ok());
  table.state.reset(std::vector<std::string>{""});
  expect_error(table.find(longs({1}), Tensor::scalar<int64_t>(0)),
               Code::kCancelled, "was reset");
}

TEST_CASE("a table is read from a text file, by columns, lines and numbers") {
  const std::string path = testing::temp_path("vocabulary").string();
  const auto fill = [&](DataType key, DataType value, int64_t key_index,
                        int64_t value_index, AttrMap attrs = {}) {
    auto table = std::make_unique<TestedTable>("HashTableV2", key, value);
    attrs.emplace("key_index", key_index);
    attrs.emplace("value_index", value_index);
    const Status status =
        call_op(table->state, "InitializeTableFromTextFileV2",
                {table->handle, Tensor::scalar(path)}, std::move(attrs))
            .status();
    return std::pair(std::move(table), status);
  };
  constexpr auto kString = DataType::kString;
  constexpr auto kInt64 = DataType::kInt64;
  const Tensor none = Tensor::scalar<int64_t>(-1);

  write(path, "a\t1\nb\t2\r\nc\t3");
  auto [columns, filled] = fill(kString, kInt64, 0, 1);
  CHECK(filled.ok());
  expect_close(columns->find(texts({"b", "c", "z"}), none), longs({2, 3, -1}));
  // Who shares it may have filled it.
  CHECK(call_op(columns->state, "InitializeTableFromTextFileV2",
                {columns->handle, Tensor::scalar(path)},
                {{"key_index", 0}, {"value_index", 1}})
            .ok());
  auto [whole, filled_whole] =
      fill(kString, kInt64, -2, -1, {{"vocab_size", 2}, {"offset", 10}});
  CHECK(filled_whole.ok());
  expect_close(whole->find(texts({"b\t2", "c\t3"}), none), longs({11, -1}));

  const auto fails = [&](Status status, Code code, std::string_view text) {
    expect_error(status, code, text);
  };
  fails(fill(kString, kInt64, -2, -1, {{"vocab_size", 5}}).second,
        Code::kInvalidArgument, "has 3 lines, but vocab_size says 5");
  fails(fill(kString, kInt64, 0, 9).second, Code::kInvalidArgument,
        "has no value of int64 in column 9");
  fails(fill(kString, kInt64, 1, 0).second, Code::kInvalidArgument,
        "line 1 of ");
  fails(fill(kString, kString, -1, -2).second, Code::kInvalidArgument,
        "line numbers as keys are of int64, not of string");
  fails(fill(kInt64, kInt64, -2, -1).second, Code::kInvalidArgument,
        "whole lines as keys are of string, not of int64");
  fails(fill(kString, kInt64, 0, 1, {{"delimiter", "ab"}}).second,
        Code::kInvalidArgument, "must be one character, not \"ab\"");
  write(path, "a\n\nb\n");
  fails(fill(kString, kInt64, -2, -1).second, Code::kInvalidArgument,
        "line 2 of ");
  write(path, "a\na\n");
  fails(fill(kString, kInt64, -2, -1).second, Code::kFailedPrecondition,
        "is there twice");
  write(path, "");
  fails(fill(kString, kInt64, -2, -1).second, Code::kOutOfRange, "is empty");
  write(path, std::string(TableFile::kMaxLineBytes + 1, 'x'));
  fails(fill(kString, kInt64, -2, -1).second, Code::kInvalidArgument,
        "is longer than 1048576 bytes");
  std::remove(path.c_str());
  fails(fill(kString, kInt64, -2, -1).second, Code::kNotFound, "cannot read");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  fails(fill(kString, kInt64, -2, -1).second, Code::kInvalidArgument,
        "is not a regular file");
  std::remove(path.c_str());
}
