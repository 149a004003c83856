// Kernels of staging areas, accumulators and barriers.
#include <doctest/doctest.h>

#include <limits>

#include "tests/devices/state/calls.h"
#include "tests/devices/state/staged.h"
#include "tests/devices/state/tested_barrier.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::devices;
using namespace tagflow::devices::staged;

TEST_CASE("a staging area is first in, first out, and bounded") {
  ResourceManager state;
  const AttrMap attrs = area(kInt, {{"capacity", 2}});
  const TestedOp stage("Stage", kInt, attrs), unstage("Unstage", {}, attrs),
      peek("StagePeek", kInt, attrs);
  Call early(unstage, {}, &state);
  early.start();
  CHECK_FALSE(early.is_over());
  CHECK(early.waits_for() ==
        "staging area \"area\" has 0 of 2 tuples, 1 waits to take");
  for (int i = 0; i < 3; ++i)
    CHECK(Call(stage, {one(i)}, &state).start().status().ok());
  expect_close(early.output(), one(0));
  Call full(stage, {one(3)}, &state);
  full.start();
  CHECK_FALSE(full.is_over());
  Call second(peek, {one(1)}, &state), third(peek, {one(2)}, &state);
  expect_close(second.start().output(), one(2));
  third.start();
  CHECK_FALSE(third.is_over());
  third.cancel();
  CHECK(third.status().code() == Code::kCancelled);
  expect_close(Call(unstage, {}, &state).start().output(), one(1));
  CHECK(full.is_over());
  CHECK(count(state, "StageSize", kInt) == 2);
  CHECK(call_op(state, "StageClear", {}, attrs).ok());
  CHECK(count(state, "StageSize", kInt) == 0);
}

TEST_CASE("a staging area refuses what can never fit, and other tuples") {
  ResourceManager state;
  const AttrMap attrs = area(kInt, {{"memory_limit", 10}});
  const TestedOp stage("Stage", kInt, attrs);
  expect_error(
      Call(stage, {parts({1, 2, 3})}, &state).start().status(),
      Code::kResourceExhausted,
      "[Stage] tensors of 12 bytes do not fit staging area \"area\", whose "
      "memory_limit is 10 bytes");
  CHECK(Call(stage, {one(1)}, &state).start().status().ok());
  const TestedOp two("Unstage", {}, area(kTwo));
  expect_error(Call(two, {}, &state).start().status(), Code::kInvalidArgument,
               "has tuples of 1 tensors, not of 2");
  const TestedOp other("Unstage", {}, area({DataType::kFloat}));
  expect_error(Call(other, {}, &state).start().status(), Code::kInvalidArgument,
               "tensor 0 is int32[], not of float");
  const TestedOp peek("StagePeek", kInt, attrs);
  expect_error(Call(peek, {one(-1)}, &state).start().status(),
               Code::kInvalidArgument, "must not be negative");
  CHECK(count(state, "StageSize", kInt) == 1);
}

TEST_CASE("tuples of a staging map come and go part by part") {
  for (const std::string start : {"Map", "OrderedMap"}) {
    ResourceManager state;
    const Types one_part = {DataType::kInt64, DataType::kInt32,
                            DataType::kInt32};
    const TestedOp stage(start + "Stage", one_part,
                         area(kTwo, {{"fake_dtypes", kInt}}));
    const TestedOp take(start + "Unstage", {DataType::kInt64, DataType::kInt32},
                        area(kInt));
    const TestedOp peek(start + "Peek", {DataType::kInt64, DataType::kInt32},
                        area(kTwo));
    const TestedOp any(start + "UnstageNoKey", kInt, area(kTwo));
    const auto put = [&](int64_t k, int part, int value) {
      return Call(stage, {key(k), parts({part}), one(value)}, &state)
          .start()
          .status();
    };
    Call early(peek, {key(5), parts({0, 1})}, &state);
    early.start();
    CHECK(put(5, 0, 50).ok());
    CHECK_FALSE(early.is_over());
    CHECK(count(state, start + "IncompleteSize", kTwo) == 1);
    expect_error(put(5, 0, 51), Code::kInvalidArgument,
                 "tensor 0 of key 5 was put in before");
    CHECK(put(5, 1, 51).ok());
    expect_close(early.output(1), one(51));
    CHECK(count(state, start + "Size", kTwo) == 1);

    expect_close(Call(take, {key(5), parts({1})}, &state).start().output(),
                 one(51));
    expect_error(Call(take, {key(5), parts({1})}, &state).start().status(),
                 Code::kInvalidArgument, "tensor 1 of key 5 has been taken");
    expect_close(Call(take, {key(5), parts({0})}, &state).start().output(),
                 one(50));
    CHECK(count(state, start + "Size", kTwo) == 0);

    for (const int64_t k : {7, 2})
      for (const int part : {0, 1}) CHECK(put(k, part, int(k) + part).ok());
    Call first(any, {parts({0, 1})}, &state);
    first.start();
    expect_close(first.output(0), key(2));
    expect_close(first.output(2), one(3));
    expect_error(put(1, 2, 1), Code::kInvalidArgument,
                 "index 2 is out of bounds: tuples have 2 tensors");
    expect_error(Call(peek, {key(7), parts({1, 0})}, &state).start().status(),
                 Code::kInvalidArgument,
                 "indices must increase, but 0 comes after 1");
    CHECK(call_op(state, start + "Clear", {}, area(kTwo)).ok());
    CHECK(count(state, start + "Size", kTwo) == 0);
  }
}

// --- Accumulators -----------------------------------------------------------

TEST_CASE("an accumulator gives the mean of fresh gradients") {
  ResourceManager state;
  const AttrMap dtype{{"dtype", DataType::kFloat}};
  for (const std::string reduction : {"MEAN", "SUM"}) {
    const auto made = call_op(state, "ResourceConditionalAccumulator", {},
                              {{"dtype", DataType::kFloat},
                               {"shape", PartialShape({2})},
                               {"shared_name", reduction},
                               {"reduction_type", reduction}});
    REQUIRE(made.ok());
    const Tensor handle = (*made)[0];
    const auto apply = [&](int64_t step, const Tensor& gradient) {
      return call_op(state, "ResourceAccumulatorApplyGradient",
                     {handle, key(step), gradient})
          .status();
    };
    const auto number = [&] {
      return (*call_op(state, "ResourceAccumulatorNumAccumulated", {handle}))[0]
          .scalar_value<int32_t>();
    };
    const TestedOp take("ResourceAccumulatorTakeGradient",
                        {DataType::kResource, DataType::kInt32}, dtype);
    Call waits(take, {handle, one(2)}, &state);
    waits.start();
    CHECK(apply(0, Tensor::vector<float>({1, 2})).ok());
    CHECK_FALSE(waits.is_over());
    CHECK(waits.waits_for() ==
          "accumulator \"" + reduction + "\" has 1 gradient, 1 take waits");
    CHECK(apply(0, Tensor::vector<float>({3, 6})).ok());
    expect_close(waits.output(), reduction == "MEAN"
                                     ? Tensor::vector<float>({2, 4})
                                     : Tensor::vector<float>({4, 8}));
    // The next step has begun.
    CHECK(apply(0, Tensor::vector<float>({1, 2})).ok());
    CHECK(number() == 0);
    CHECK(apply(1, Tensor::vector<float>({1, 2})).ok());
    CHECK(number() == 1);
    CHECK(call_op(state, "ResourceAccumulatorSetGlobalStep", {handle, key(5)})
              .ok());
    CHECK(apply(4, Tensor::vector<float>({1, 2})).ok());
    CHECK(number() == 1);
    expect_error(apply(5, Tensor::vector<float>({1})), Code::kInvalidArgument,
                 "a gradient of shape [1] does not fit accumulator \"" +
                     reduction + "\"");
    expect_error(Call(take, {handle, one(0)}, &state).start().status(),
                 Code::kInvalidArgument,
                 "num_required must be positive, not 0");
    const TestedOp wrong("ResourceAccumulatorTakeGradient",
                         {DataType::kResource, DataType::kInt32},
                         {{"dtype", DataType::kDouble}});
    expect_error(Call(wrong, {handle, one(1)}, &state).start().status(),
                 Code::kInvalidArgument, "is used as a dense one of double");
  }
}

TEST_CASE("a sparse accumulator sums rows by their index") {
  for (const std::string reduction : {"MEAN", "SUM"}) {
    ResourceManager state;
    const TestedOp make("SparseConditionalAccumulator", {},
                        {{"dtype", DataType::kFloat},
                         {"shape", PartialShape({4, 2})},
                         {"reduction_type", reduction}});
    Call made(make, {}, &state);
    const Tensor handle = made.start().output();
    const TestedOp apply(
        "SparseAccumulatorApplyGradient",
        {make_ref(DataType::kString), DataType::kInt64, DataType::kInt64,
         DataType::kFloat, DataType::kInt64},
        {{"dtype", DataType::kFloat}, {"has_known_shape", true}});
    const TestedOp take("SparseAccumulatorTakeGradient",
                        {make_ref(DataType::kString), DataType::kInt32},
                        {{"dtype", DataType::kFloat}});
    const auto add = [&](std::initializer_list<int64_t> indices,
                         const Tensor& values) {
      return Call(apply,
                  {handle, key(0), Tensor::vector<int64_t>(indices), values,
                   Tensor::vector<int64_t>({4, 2})},
                  &state)
          .start()
          .status();
    };
    CHECK(add({2, 0}, Tensor::of<float>({2, 2}, {3, 4, 1, 2})).ok());
    CHECK(add({2, 3}, Tensor::of<float>({2, 2}, {5, 6, 7, 8})).ok());
    expect_error(add({4}, Tensor::of<float>({1, 2}, {1, 2})),
                 Code::kInvalidArgument,
                 "slice 0 has index 4, beyond the 4 rows");
    expect_error(add({1}, Tensor::of<float>({1, 3}, {1, 2, 3})),
                 Code::kInvalidArgument,
                 "dimension 1 of values is 3, and 2 is wanted");
    expect_error(add({1, 2}, Tensor::of<float>({1, 2}, {1, 2})),
                 Code::kInvalidArgument, "2 indices for 1 rows of values");
    Call taken(take, {handle, one(2)}, &state);
    taken.start();
    expect_close(taken.output(0), Tensor::vector<int64_t>({0, 2, 3}));
    expect_close(taken.output(1),
                 reduction == "MEAN"
                     ? Tensor::of<float>({3, 2}, {1, 2, 4, 5, 7, 8})
                     : Tensor::of<float>({3, 2}, {1, 2, 8, 10, 7, 8}));
    expect_close(taken.output(2), Tensor::vector<int64_t>({4, 2}));
  }
}

TEST_CASE("the shape of a sparse accumulator is how its gradients begin") {
  ResourceManager state;
  const TestedOp apply(
      "SparseAccumulatorApplyGradient",
      {make_ref(DataType::kString), DataType::kInt64, DataType::kInt64,
       DataType::kFloat, DataType::kInt64},
      {{"dtype", DataType::kFloat}, {"has_known_shape", true}});
  const auto make = [&](const char* name, const PartialShape& shape) {
    const TestedOp op(
        "SparseConditionalAccumulator", {},
        {{"dtype", DataType::kFloat}, {"shape", shape}, {"shared_name", name}});
    Call made(op, {}, &state);
    return made.start().output();
  };
  const auto add = [&](const Tensor& to, const Tensor& values,
                       std::initializer_list<int64_t> shape) {
    return Call(apply,
                {to, key(0), Tensor::vector<int64_t>({0}), values,
                 Tensor::vector<int64_t>(shape)},
                &state)
        .start()
        .status();
  };
  const Tensor row = Tensor::of<float>({1, 2}, {1, 2});
  const Tensor cube = Tensor::of<float>({1, 2, 1}, {1, 2});
  const Tensor any = make("any", PartialShape::scalar());
  CHECK(add(any, row, {3, 2}).ok());
  // Until the next take, all are as the first.
  expect_error(add(any, cube, {3, 2, 1}), Code::kInvalidArgument,
               "values of rank 3 do not fit accumulator \"any\", whose rank is "
               "2");
  expect_error(add(any, Tensor::of<float>({1, 3}, {1, 2, 3}), {3, 3}),
               Code::kInvalidArgument,
               "dimension 1 of values is 3, and 2 is wanted");
  const Tensor pairs = make("pairs", PartialShape({2, PartialShape::kUnknown}));
  CHECK(add(pairs, cube, {2, 2, 1}).ok());
  expect_error(add(pairs, cube, {2}), Code::kInvalidArgument,
               "gradients of rank 1 do not fit: at least 2 is wanted");
  expect_error(add(pairs, cube, {3, 2, 1}), Code::kInvalidArgument,
               "dimension 0 of gradients is 3, and 2 is wanted");
  expect_error(add(pairs, Tensor::vector<float>({1}), {2, 2}),
               Code::kInvalidArgument,
               "values of rank 1 do not fit: at least 2 is wanted");
}

// --- Barriers ---------------------------------------------------------------

TEST_CASE("a barrier gives tuples when all their parts are there") {
  TestedBarrier barrier;
  Call waits(barrier.take, {barrier.handle, one(1)}, &barrier.state);
  waits.start();
  CHECK(barrier.insert(0, {"a", "b", "c"}, {1, 2, 3}).ok());
  CHECK(barrier.size("BarrierIncompleteSize") == 3);
  CHECK_FALSE(waits.is_over());
  CHECK(waits.waits_for() ==
        "barrier \"b\" has 0 tuples ready and 3 incomplete, 1 take waits");
  CHECK(barrier.insert(1, {"c", "a"}, {30, 10}).ok());
  expect_close(waits.output(0),
               Tensor::vector<int64_t>({std::numeric_limits<int64_t>::min()}));
  expect_close(waits.output(1), Tensor::vector<std::string>({"c"}));
  expect_close(waits.output(3), Tensor::vector<float>({30}));
  CHECK(barrier.size("BarrierReadySize") == 1);
  expect_error(barrier.insert(0, {"z", "b"}, {5, 6}), Code::kInvalidArgument,
               "key \"b\" of barrier \"b\" has a value for component 0");
  CHECK(barrier.size("BarrierIncompleteSize") == 1);
  expect_error(barrier.insert(0, {"x"}, {}), Code::kInvalidArgument,
               "component 0 of barrier \"b\" takes float[1] for keys "
               "string[1], not float[0]");
  expect_error(barrier.insert(2, {"x"}, {1}), Code::kInvalidArgument,
               "has 2 components, none of index 2");
}

TEST_CASE("a barrier without shapes takes parts of any shape") {
  ResourceManager state;
  const Types types = {DataType::kFloat};
  const TestedOp make("Barrier", {},
                      {{"component_types", types}, {"shared_name", "any"}});
  Call made(make, {}, &state);
  const Tensor handle = made.start().output();
  const auto insert = [&](std::vector<std::string> keys, Tensor values) {
    const TestedOp op(
        "BarrierInsertMany",
        {make_ref(DataType::kString), DataType::kString, DataType::kFloat},
        {{"component_index", 0}});
    const int64_t count = int64_t(keys.size());
    return Call(op,
                {handle, Tensor::of<std::string>({count}, std::move(keys)),
                 std::move(values)},
                &state)
        .start()
        .status();
  };
  CHECK(insert({"a", "b"}, Tensor::of<float>({2, 2}, {1, 2, 3, 4})).ok());
  CHECK(insert({"c"}, Tensor::of<float>({1, 3}, {5, 6, 7})).ok());
  expect_error(insert({"d"}, Tensor::make(DataType::kFloat, {1, 0})),
               Code::kInvalidArgument,
               "component 0 of barrier \"any\" must have elements, not be "
               "float[1,0]");
  expect_error(insert({"d"}, Tensor::vector<float>({1, 2})),
               Code::kInvalidArgument, "takes float[1] for keys string[1]");
  CHECK(insert({}, Tensor::make(DataType::kFloat, {0})).ok());
  const TestedOp take("BarrierTakeMany",
                      {make_ref(DataType::kString), DataType::kInt32},
                      {{"component_types", types}});
  Call differ(take, {handle, one(3)}, &state);
  expect_error(differ.start().status(), Code::kInvalidArgument,
               "component 0 of barrier \"any\" was inserted as float[2] and as "
               "float[3], which have no batch");
  Call none(take, {handle, one(0)}, &state);
  CHECK(none.start().output(2).shape() == Shape{0});
  Call pair(take, {handle, one(2)}, &state);
  expect_close(pair.start().output(2), Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
}

TEST_CASE("nodes that name one barrier agree on its components") {
  TestedBarrier barrier;
  const auto made_as = [&](Types types, std::vector<PartialShape> shapes) {
    const TestedOp op("Barrier", {},
                      {{"component_types", std::move(types)},
                       {"shapes", std::move(shapes)},
                       {"shared_name", "b"}});
    return Call(op, {}, &barrier.state).start().status();
  };
  const PartialShape scalar = PartialShape::scalar();
  CHECK(made_as(barrier.types, {scalar, scalar}).ok());
  expect_error(made_as({DataType::kFloat}, {scalar}), Code::kInvalidArgument,
               "[Barrier] barrier \"b\" exists with components of types "
               "(float, float), but the node asks for (float)");
  expect_error(made_as(barrier.types, {}), Code::kInvalidArgument,
               "exists with components of shapes [], [], but the node asks for "
               "shapes <unknown>, <unknown>");
  expect_error(TestedOp("Barrier", {},
                        {{"component_types", Types{DataType::kFloat}},
                         {"shapes", std::vector<PartialShape>{PartialShape(
                                        {PartialShape::kUnknown})}}})
                   .status(),
               Code::kInvalidArgument,
               "the shape of a component must be known, or not given, not [?]");
}

TEST_CASE("an insertion that lacks memory changes nothing of a barrier") {
  const TestedOp insert(
      "BarrierInsertMany",
      {make_ref(DataType::kString), DataType::kString, DataType::kFloat},
      {{"component_index", 1}});
  const std::vector<std::string> keys = {"a", "key that is not short", "c"};
  int failures = 0;
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    TestedBarrier barrier;
    CHECK(barrier.insert(0, {keys[0], "b", keys[1]}, {1, 2, 3}).ok());
    Call call(insert,
              {barrier.handle, Tensor::of<std::string>({3}, keys),
               Tensor::vector<float>({10, 20, 30})},
              &barrier.state);
    FailAllocation fail(k);
    call.start();
    fail.stop();
    if (call.status().ok()) {
      if (!fail.failed()) break;
    } else {
      ++failures;
      CHECK(call.status().code() == Code::kResourceExhausted);
      CHECK(barrier.size("BarrierReadySize") == 0);
      CHECK(barrier.size("BarrierIncompleteSize") == 3);
      CHECK(barrier.insert(1, keys, {10, 20, 30}).ok());
    }
    CHECK(barrier.size("BarrierReadySize") == 2);
    CHECK(barrier.size("BarrierIncompleteSize") == 2);
    CHECK(barrier.insert(0, {keys[2]}, {5}).ok());
    Call taken(barrier.take, {barrier.handle, one(3)}, &barrier.state);
    taken.start();
    expect_close(taken.output(1),
                 Tensor::vector<std::string>({keys[0], keys[1], keys[2]}));
    expect_close(taken.output(2), Tensor::vector<float>({1, 3, 5}));
    expect_close(taken.output(3), Tensor::vector<float>({10, 20, 30}));
  }
  CHECK(failures > 5);
}

TEST_CASE("a take waits for what a closed barrier has begun") {
  TestedBarrier barrier;
  CHECK(barrier.insert(0, {"a", "b"}, {1, 2}).ok());
  CHECK(barrier.insert(1, {"a"}, {10}).ok());
  CHECK(barrier.close(false).ok());
  expect_error(Call(barrier.take, {barrier.handle, one(3)}, &barrier.state)
                   .start()
                   .status(),
               Code::kOutOfRange, "(requested 3, total size 2)");
  Call both(barrier.take, {barrier.handle, one(2)}, &barrier.state);
  both.start();
  CHECK_FALSE(both.is_over());
  CHECK(barrier.insert(1, {"b"}, {20}).ok());
  expect_close(both.output(1), Tensor::vector<std::string>({"a", "b"}));
  // The insertions are numbered by those that began a tuple.
  const int64_t first = std::numeric_limits<int64_t>::min();
  expect_close(both.output(0), Tensor::vector<int64_t>({first, first}));
}

TEST_CASE("insertions that complete tuples have no numbers") {
  TestedBarrier barrier;
  for (const char* key : {"a", "b"}) {
    CHECK(barrier.insert(0, {key}, {1}).ok());
    CHECK(barrier.insert(1, {key}, {2}).ok());
  }
  Call both(barrier.take, {barrier.handle, one(2)}, &barrier.state);
  both.start();
  const int64_t first = std::numeric_limits<int64_t>::min();
  expect_close(both.output(0), Tensor::vector<int64_t>({first, first + 1}));
}

TEST_CASE("a closed barrier completes what it has, and nothing new") {
  TestedBarrier barrier;
  CHECK(barrier.insert(0, {"a", "b"}, {1, 2}).ok());
  CHECK(barrier.insert(1, {"a"}, {10}).ok());
  Call less(barrier.take_less, {barrier.handle, one(50)}, &barrier.state);
  less.start();
  CHECK(barrier.close(false).ok());
  expect_error(barrier.close(false), Code::kCancelled, "is already closed");
  expect_error(barrier.insert(0, {"z"}, {1}), Code::kCancelled,
               "has nothing of key \"z\"");
  CHECK_FALSE(less.is_over());
  CHECK(barrier.insert(1, {"b"}, {20}).ok());
  expect_close(less.output(1), Tensor::vector<std::string>({"a", "b"}));
  CHECK(barrier.close(true).ok());
  expect_error(barrier.insert(1, {"q"}, {20}), Code::kCancelled, "is closed");
  expect_error(Call(barrier.take, {barrier.handle, one(50)}, &barrier.state)
                   .start()
                   .status(),
               Code::kOutOfRange, "(requested 50, total size 0)");
  Call none(barrier.take_less, {barrier.handle, one(5)}, &barrier.state);
  expect_error(none.start().status(), Code::kOutOfRange,
               "(requested 5, total size 0)");
}
