// What queues, staging areas, barriers and accumulators take of a memory with a
// limit, and give back.
#include <doctest/doctest.h>

#include <algorithm>

#include "devices/tracking_allocator.h"
#include "tests/devices/state/tested_barrier.h"

using namespace std::string_literals;  // NOLINT: tests

namespace tagflow::devices {

namespace {

// Ops in one memory. A call must not wait.
class Limited {
 public:
  explicit Limited(int64_t limit)
      : memory_(TrackingAllocator::make({"here", limit})) {}

  Status run(const TestedOp& op, const std::vector<Tensor>& inputs) {
    return Call(op, inputs, &state_, *memory_).start().status();
  }
  // With outputs in other memory: there may be none left here.
  Status run_outside(const TestedOp& op, const std::vector<Tensor>& inputs) {
    return Call(op, inputs, &state_).start().status();
  }
  Tensor find_outside(const TestedOp& op, const std::vector<Tensor>& inputs) {
    return Call(op, inputs, &state_).start().output();
  }
  Tensor make(std::string_view op, AttrMap attrs) {
    const TestedOp made(op, {}, std::move(attrs));
    return Call(made, {}, &state_).start().output();
  }
  Result<Tensor> make_here(const TestedOp& op) {
    Call call(op, {}, &state_, *memory_);
    TAGFLOW_RETURN_IF_ERROR(call.start().status());
    return call.output();
  }
  int64_t in_use() const { return memory_->ledger().in_use(); }

 private:
  TrackingAllocator::Owner memory_;
  ResourceManager state_;
};

constexpr DataType kInt = DataType::kInt32;
const DataType kHandle = make_ref(DataType::kString);

}  // namespace

TEST_CASE("a queue's places count until it has shrunk") {
  for (const char* kind : {"FIFOQueueV2", "RandomShuffleQueueV2"}) {
    CAPTURE(kind);
    Limited limited(1 << 20);
    const Tensor queue = limited.make(kind, {{"component_types", Types{kInt}}});
    const TestedOp put("QueueEnqueueV2", {DataType::kResource, kInt},
                       {{"Tcomponents", Types{kInt}}});
    const TestedOp take("QueueDequeueV2", {DataType::kResource},
                        {{"component_types", Types{kInt}}});
    Status status;
    int count = 0;
    for (; status.ok(); ++count)
      status = limited.run(put, {queue, Tensor::scalar(count)});
    expect_error(status, Code::kResourceExhausted, "out of memory: queue \"");
    --count;
    const int64_t full = limited.in_use();
    CHECK(full >= count * int64_t(sizeof(Tensor)));
    for (int i = 0; i < count; ++i) REQUIRE(limited.run(take, {queue}).ok());
    if (std::string(kind) == "FIFOQueueV2") CHECK(limited.in_use() < full / 8);
    CHECK(limited.run(put, {queue, Tensor::scalar(1)}).ok());
  }
}

TEST_CASE("objects without a name count as long as there is a handle") {
  const std::string anonymous = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";
  const AttrMap table = {{"key_dtype", DataType::kInt64},
                         {"value_dtype", DataType::kInt64}};
  const std::pair<const char*, AttrMap> kinds[] = {
      {"AnonymousHashTable", table},
      {"AnonymousMutableHashTable", table},
      {"AnonymousMutableHashTableOfTensors", table},
      {"FIFOQueueV2",
       {{"component_types", Types{kInt}}, {"shared_name", anonymous}}},
      {"VarHandleOp",
       {{"dtype", kInt},
        {"shape", PartialShape::scalar()},
        {"shared_name", anonymous}}},
  };
  for (const auto& kind : kinds) {
    const auto& [op, attrs] = kind;
    CAPTURE(kind.first);
    Limited limited(10'000);
    const TestedOp make(op, {}, attrs);
    std::vector<Tensor> handles;
    while (handles.size() < 100) {
      Result<Tensor> handle = limited.make_here(make);
      if (!handle.ok()) {
        expect_error(handle.status(), Code::kResourceExhausted,
                     "out of memory: ");
        break;
      }
      handles.push_back(*std::move(handle));
    }
    CHECK(handles.size() > 2);
    CHECK(handles.size() < 10);
    handles.clear();
    CHECK(limited.in_use() == 0);
  }
}

TEST_CASE("what a staging area has counts until it is taken") {
  const AttrMap attrs = {{"dtypes", Types{kInt}}, {"shared_name", "a"}};
  const TestedOp put("Stage", {kInt}, {{"shared_name", "a"}});
  const TestedOp take("Unstage", {}, attrs);
  const TestedOp clear("StageClear", {}, attrs);
  const TestedOp map_put("MapStage", {DataType::kInt64, kInt, kInt}, attrs);
  const TestedOp map_take("MapUnstage", {DataType::kInt64, kInt}, attrs);
  const TestedOp map_clear("MapClear", {}, attrs);
  const Tensor first = Tensor::vector<int32_t>({0});
  const Tensor value = Tensor::scalar(7);
  {
    Limited limited(10'000);
    Status status;
    int count = 0;
    for (; status.ok(); ++count) status = limited.run(put, {value});
    expect_error(status, Code::kResourceExhausted,
                 "staging area \"a\" with " + std::to_string(count - 1) +
                     " tuples needs ");
    const int64_t full = limited.in_use();
    REQUIRE(limited.run(take, {}).ok());
    CHECK(limited.in_use() < full);
    CHECK(limited.run(put, {value}).ok());
    CHECK(limited.in_use() == full);
    CHECK(limited.run(clear, {}).ok());
    CHECK(limited.in_use() == 0);
  }
  Limited limited(10'000);
  Status status;
  int64_t count = 0;
  for (; status.ok(); ++count)
    status = limited.run(map_put, {Tensor::scalar(count), first, value});
  expect_error(status, Code::kResourceExhausted, "staging area \"a\" with ");
  const int64_t full = limited.in_use();
  const Tensor key = Tensor::scalar(int64_t{0});
  REQUIRE(limited.run(map_take, {key, first}).ok());
  CHECK(limited.in_use() < full);
  CHECK(limited.run(map_put, {key, first, value}).ok());
  // A tuple that exists already takes no more.
  CHECK(limited.in_use() == full);
  REQUIRE(limited.run(map_take, {key, first}).ok());
  REQUIRE(
      limited.run(map_put, {Tensor::scalar(int64_t{1}), first, value}).ok());
  CHECK(limited.in_use() < full);
  CHECK(limited.run(map_clear, {}).ok());
  CHECK(limited.in_use() == 0);
}

TEST_CASE("a barrier's tuples count until they are taken or dropped") {
  Limited limited(10'000);
  const Tensor barrier = limited.make(
      "Barrier",
      {{"component_types", Types{kInt, kInt}},
       {"shapes", std::vector<PartialShape>(2, PartialShape::scalar())},
       {"shared_name", "b"}});
  const auto insert = [&](int part, int key) {
    const TestedOp op("BarrierInsertMany", {kHandle, DataType::kString, kInt},
                      {{"component_index", part}});
    const std::string name = "key " + std::to_string(key);
    return limited.run(op, {barrier, Tensor::of<std::string>({1}, {name}),
                            Tensor::vector<int32_t>({key})});
  };
  Status status;
  int count = 0;
  for (; status.ok(); ++count) status = insert(0, count);
  expect_error(
      status, Code::kResourceExhausted,
      "barrier \"b\" with " + std::to_string(count - 1) + " tuples needs ");
  const int64_t full = limited.in_use();
  CHECK(insert(1, 0).ok());
  CHECK(limited.in_use() == full);
  const TestedOp take("BarrierTakeMany", {kHandle, kInt},
                      {{"component_types", Types{kInt, kInt}}});
  REQUIRE(limited.run_outside(take, {barrier, Tensor::scalar(1)}).ok());
  CHECK(limited.in_use() < full);
  CHECK(insert(0, 0).ok());
  CHECK(limited.in_use() == full);
  const TestedOp close("BarrierClose", {kHandle},
                       {{"cancel_pending_enqueues", true}});
  REQUIRE(limited.run(close, {barrier}).ok());
  CHECK(limited.in_use() <= 64);
}

TEST_CASE("a sparse accumulator's rows count until they are taken") {
  Limited limited(10'000);
  const Tensor accumulator =
      limited.make("SparseConditionalAccumulator", {{"dtype", DataType::kFloat},
                                                    {"shape", PartialShape()},
                                                    {"shared_name", "a"}});
  const TestedOp apply(
      "SparseAccumulatorApplyGradient",
      {kHandle, DataType::kInt64, DataType::kInt64, DataType::kFloat,
       DataType::kInt64},
      {{"dtype", DataType::kFloat}, {"has_known_shape", false}});
  const TestedOp take("SparseAccumulatorTakeGradient", {kHandle, kInt},
                      {{"dtype", DataType::kFloat}});
  Status status;
  int64_t count = 0;
  for (; status.ok(); ++count)
    status = limited.run(
        apply, {accumulator, Tensor::scalar(int64_t{0}),
                Tensor::vector<int64_t>({count}), Tensor::vector<float>({1}),
                *Tensor::allocate(DataType::kInt64, {0})});
  expect_error(
      status, Code::kResourceExhausted,
      "accumulator \"a\" with " + std::to_string(count - 1) + " rows needs ");
  CHECK(limited.in_use() > 5000);
  REQUIRE(limited.run_outside(take, {accumulator, Tensor::scalar(1)}).ok());
  CHECK(limited.in_use() == 0);
}

// The elements are texts of so many of these characters.
Tensor texts(std::initializer_list<std::pair<size_t, char>> each) {
  std::vector<std::string> all;
  for (const auto& [size, character] : each) all.emplace_back(size, character);
  return Tensor::of<std::string>({int64_t(all.size())}, all);
}

void check_texts(const Tensor& found, const Tensor& wanted) {
  CHECK(std::ranges::equal(found.flat<std::string>(),
                           wanted.flat<std::string>()));
}

TEST_CASE("a table that has no memory for new entries keeps its old ones") {
  constexpr DataType kText = DataType::kString;
  Limited limited(1 << 15);
  const Tensor table = limited.make(
      "MutableHashTableV2", {{"key_dtype", kText}, {"value_dtype", kText}});
  const AttrMap types{{"Tin", kText}, {"Tout", kText}};
  const std::vector<DataType> inputs{DataType::kResource, kText, kText};
  const TestedOp put("LookupTableInsertV2", inputs, types);
  const TestedOp import("LookupTableImportV2", inputs, types);
  const TestedOp find("LookupTableFindV2", inputs, types);
  const Tensor keys = texts({{40, 'a'}, {40, 'b'}, {40, 'c'}});
  const auto check_has = [&](const Tensor& wanted) {
    check_texts(
        limited.find_outside(find, {table, keys, Tensor::scalar("none"s)}),
        wanted);
  };
  const Tensor old = texts({{100, 'x'}, {200, 'x'}});
  REQUIRE(limited.run(put, {table, texts({{40, 'a'}, {40, 'b'}}), old}).ok());
  const int64_t before = limited.in_use();
  const Tensor had = Tensor::of<std::string>(
      {3}, {std::string(100, 'x'), std::string(200, 'x'), "none"});
  // The last one does not fit.
  const Tensor more = texts({{300, 'y'}, {400, 'y'}, {1 << 15, 'y'}});
  for (const TestedOp* op : {&put, &import}) {
    expect_error(limited.run(*op, {table, keys, more}),
                 Code::kResourceExhausted, "out of memory");
    check_has(had);
    CHECK(limited.in_use() == before);
  }
  const Tensor other = texts({{300, 'z'}, {400, 'z'}, {500, 'z'}});
  for (const TestedOp* op : {&put, &import}) {
    REQUIRE(limited.run(*op, {table, keys, other}).ok());
    check_has(other);
  }
}

TEST_CASE("a variable of strings that has no memory for new ones keeps all") {
  constexpr DataType kText = DataType::kString, kResource = DataType::kResource;
  Limited limited(1 << 14);
  const Tensor variable = limited.make(
      "VarHandleOp", {{"dtype", kText}, {"shape", PartialShape({4})}});
  const Tensor first = texts({{100, 'a'}, {100, 'b'}, {100, 'c'}, {100, 'd'}});
  const TestedOp assign("AssignVariableOp", {kResource, kText});
  const TestedOp read("ReadVariableOp", {kResource}, {{"dtype", kText}});
  REQUIRE(limited.run(assign, {variable, first}).ok());
  const TestedOp slice("ResourceStridedSliceAssign",
                       {kResource, kInt, kInt, kInt, kText});
  const TestedOp update("ResourceScatterUpdate", {kResource, kInt, kText});
  const TestedOp add("ResourceScatterNdAdd", {kResource, kInt, kText});
  const auto ints = [](std::initializer_list<int32_t> all) {
    return Tensor::vector<int32_t>(all);
  };
  // Elements 3 and 1, in this order.
  const std::vector<Tensor> places{ints({3}), ints({0}), ints({-2})};
  const Tensor rows = ints({3, 1}), vectors = *rows.reshaped({2, 1});
  const auto change = [&](const TestedOp& op, const Tensor& values) {
    std::vector<Tensor> inputs{variable};
    if (&op == &slice) {
      inputs.insert(inputs.end(), places.begin(), places.end());
    } else {
      inputs.push_back(&op == &add ? vectors : rows);
    }
    inputs.push_back(values);
    return limited.run(op, inputs);
  };
  for (const TestedOp* op : {&slice, &update, &add}) {
    CAPTURE(op->node().op());
    expect_error(change(*op, texts({{200, 'y'}, {1 << 14, 'y'}})),
                 Code::kResourceExhausted, "out of memory");
    check_texts(limited.find_outside(read, {variable}), first);
  }
  for (const TestedOp* op : {&slice, &update}) {
    CAPTURE(op->node().op());
    REQUIRE(change(*op, texts({{300, 'd'}, {300, 'b'}})).ok());
    check_texts(limited.find_outside(read, {variable}),
                texts({{100, 'a'}, {300, 'b'}, {100, 'c'}, {300, 'd'}}));
    REQUIRE(change(*op, texts({{100, 'd'}, {100, 'b'}})).ok());
  }
  // Both are added to one element.
  REQUIRE(limited
              .run(add, {variable, *ints({2, 2}).reshaped({2, 1}),
                         texts({{50, 'c'}, {60, 'c'}})})
              .ok());
  check_texts(limited.find_outside(read, {variable}),
              texts({{100, 'a'}, {100, 'b'}, {210, 'c'}, {100, 'd'}}));
}

TEST_CASE("text that state keeps counts from then on, not when it is taken") {
  constexpr DataType kText = DataType::kString;
  const AttrMap attrs = {{"dtypes", Types{kText}}, {"shared_name", "a"}};
  Limited limited(5000);
  const Tensor queue =
      limited.make("FIFOQueueV2", {{"component_types", Types{kText}}});
  const Tensor key = Tensor::scalar(int64_t{1});
  const Tensor index = Tensor::vector<int32_t>({0});
  const auto check = [&](const TestedOp& put, std::vector<Tensor> inputs,
                         const TestedOp& take,
                         const std::vector<Tensor>& take_inputs) {
    CAPTURE(put.node().op());
    inputs.push_back(Tensor::scalar(std::string(6000, 'x')));
    expect_error(limited.run(put, inputs), Code::kResourceExhausted,
                 "out of memory: a string");
    inputs.back() = Tensor::scalar(std::string(3000, 'x'));
    REQUIRE(limited.run(put, inputs).ok());
    CHECK(limited.in_use() > 3000);
    REQUIRE(limited.run(take, take_inputs).ok());
    CHECK(limited.in_use() < 3000);
  };
  check(TestedOp("QueueEnqueueV2", {DataType::kResource, kText},
                 {{"Tcomponents", Types{kText}}}),
        {queue},
        TestedOp("QueueDequeueV2", {DataType::kResource},
                 {{"component_types", Types{kText}}}),
        {queue});
  check(TestedOp("Stage", {kText}, {{"shared_name", "a"}}), {},
        TestedOp("Unstage", {}, attrs), {});
  check(TestedOp("MapStage", {DataType::kInt64, kInt, kText}, attrs),
        {key, index}, TestedOp("MapUnstage", {DataType::kInt64, kInt}, attrs),
        {key, index});
}

TEST_CASE("an element that does not get into a queue takes no memory of it") {
  constexpr DataType kText = DataType::kString;
  const Types types{kText, kText};
  Limited limited(5000);
  const Tensor queue =
      limited.make("FIFOQueueV2", {{"component_types", types}});
  const TestedOp put("QueueEnqueueV2", {DataType::kResource, kText, kText},
                     {{"Tcomponents", types}});
  const auto enqueue = [&](size_t first, size_t second) {
    return limited.run(put, {queue, Tensor::scalar(std::string(first, 'x')),
                             Tensor::scalar(std::string(second, 'y'))});
  };
  // The first component alone would fit.
  expect_error(enqueue(3000, 6000), Code::kResourceExhausted,
               "out of memory: a string");
  CHECK(limited.in_use() < 3000);
  REQUIRE(enqueue(2000, 1000).ok());
  CHECK(limited.in_use() > 3000);
}

TEST_CASE("an entry is removed from a table that has no memory left") {
  constexpr DataType kText = DataType::kString;
  Limited limited(1 << 20);
  const Tensor table = limited.make(
      "MutableHashTableV2", {{"key_dtype", kText}, {"value_dtype", kText}});
  const AttrMap types{{"Tin", kText}, {"Tout", kText}};
  const TestedOp put("LookupTableInsertV2", {DataType::kResource, kText, kText},
                     types);
  const TestedOp remove("LookupTableRemoveV2", {DataType::kResource, kText},
                        {{"Tin", kText}});
  const auto key = [](int i) {
    return Tensor::scalar(fmt::format("the key of entry {:09}", i));
  };
  // Later ones are longer: they do not fit into the place of others.
  const auto value = [](int i) {
    return Tensor::scalar(
        std::string(size_t(1000 + 10 * i), char('a' + i % 26)));
  };
  Status status;
  int count = 0;
  for (; status.ok(); ++count)
    status = limited.run(put, {table, key(count), value(count)});
  --count;
  REQUIRE(count > 100);
  // What is left is less than a value.
  for (int i = 0; i < 50; ++i)
    REQUIRE(limited.run(remove, {table, key(i)}).ok());
  const TestedOp find("LookupTableFindV2", {DataType::kResource, kText, kText},
                      types);
  for (int i = 0; i < count; ++i) {
    CAPTURE(i);
    const Tensor found =
        limited.find_outside(find, {table, key(i), Tensor::scalar("none"s)});
    const Tensor wanted = i < 50 ? Tensor::scalar("none"s) : value(i);
    CHECK(found.scalar_value<std::string>() ==
          wanted.scalar_value<std::string>());
  }
}

}  // namespace tagflow::devices
