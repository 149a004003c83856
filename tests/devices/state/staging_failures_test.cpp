// What staging areas, accumulators and barriers are after an operation on them
// has failed or was cancelled: what they have and count is what it was, and
// they serve those that wait behind.
#include <doctest/doctest.h>

#include "tests/devices/state/calls.h"
#include "tests/devices/state/no_tensor_memory.h"
#include "tests/devices/state/staged.h"
#include "tests/devices/state/tested_barrier.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::devices;
using namespace tagflow::devices::staged;

TEST_CASE("what stood behind a take of a barrier that is cancelled is served") {
  for (const bool at_once : {true, false}) {
    TestedBarrier barrier;
    Call two(barrier.take, {barrier.handle, one(2)}, &barrier.state);
    two.start(at_once);
    Call next(barrier.take, {barrier.handle, one(1)}, &barrier.state);
    next.start(at_once);
    CHECK(barrier.insert(0, {"a"}, {1}).ok());
    CHECK(barrier.insert(1, {"a"}, {10}).ok());
    CHECK_FALSE(next.is_over());
    two.cancel();
    CHECK(two.status().code() == Code::kCancelled);
    expect_close(next.output(1), Tensor::vector<std::string>({"a"}));
    CHECK(barrier.size("BarrierReadySize") == 0);
  }
}

TEST_CASE("a take of a barrier that lacks memory takes nothing") {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    TestedBarrier barrier;
    CHECK(barrier.insert(0, {"a", "b", "c"}, {1, 2, 3}).ok());
    CHECK(barrier.insert(1, {"a", "b", "c"}, {10, 20, 30}).ok());
    Call two(barrier.take, {barrier.handle, one(2)}, &barrier.state);
    FailAllocation fail(k);
    two.start();
    fail.stop();
    if (two.status().ok() && !fail.failed()) break;
    if (!two.status().ok()) {
      CHECK(two.status().code() == Code::kResourceExhausted);
      CHECK(barrier.size("BarrierReadySize") == 3);
    }
    Call rest(barrier.take_less, {barrier.handle, one(9)}, &barrier.state);
    CHECK(barrier.close(false).ok());
    rest.start();
    const bool has_all = !two.status().ok();
    expect_close(rest.output(1),
                 has_all ? Tensor::vector<std::string>({"a", "b", "c"})
                         : Tensor::vector<std::string>({"c"}));
    expect_close(rest.output(3), has_all ? Tensor::vector<float>({10, 20, 30})
                                         : Tensor::vector<float>({30}));
  }
}

TEST_CASE("an insertion that is refused inserts none of its keys") {
  TestedBarrier barrier;
  CHECK(barrier.insert(0, {"b"}, {2}).ok());
  for (const auto& keys : {std::vector<std::string>{"a", "b"},
                           std::vector<std::string>{"a", "a"}}) {
    CHECK(barrier.insert(0, keys, {5, 6}).code() == Code::kInvalidArgument);
    CHECK(barrier.size("BarrierIncompleteSize") == 1);
  }
  // The insertions are numbered by those that happened.
  CHECK(barrier.insert(0, {"a"}, {1}).ok());
  CHECK(barrier.insert(1, {"a", "b"}, {10, 20}).ok());
  Call taken(barrier.take, {barrier.handle, one(2)}, &barrier.state);
  taken.start();
  const int64_t first = std::numeric_limits<int64_t>::min();
  expect_close(taken.output(0), Tensor::vector<int64_t>({first, first + 1}));
  expect_close(taken.output(1), Tensor::vector<std::string>({"b", "a"}));
  expect_close(taken.output(2), Tensor::vector<float>({2, 1}));
  // A closed one refuses a new key, and keeps what it has.
  CHECK(barrier.insert(0, {"c"}, {3}).ok());
  CHECK(barrier.close(false).ok());
  CHECK(barrier.insert(1, {"c", "new"}, {30, 40}).code() == Code::kCancelled);
  CHECK(barrier.size("BarrierIncompleteSize") == 1);
  CHECK(barrier.insert(1, {"c"}, {30}).ok());
  CHECK(barrier.size("BarrierReadySize") == 1);
}

TEST_CASE("a barrier that has dropped what was incomplete stays without it") {
  TestedBarrier barrier;
  CHECK(barrier.insert(0, {"a", "b"}, {1, 2}).ok());
  CHECK(barrier.close(true).ok());
  CHECK(barrier.size("BarrierIncompleteSize") == 0);
  // Another closing, which is refused, brings nothing back.
  CHECK(barrier.close(false).code() == Code::kCancelled);
  CHECK(barrier.insert(1, {"a"}, {10}).code() == Code::kCancelled);
  CHECK(barrier.insert(0, {"a"}, {1}).code() == Code::kCancelled);
  CHECK(barrier.size("BarrierIncompleteSize") == 0);
  CHECK(barrier.size("BarrierReadySize") == 0);
}

// --- After failures: staging areas and accumulators -------------------------

TEST_CASE("what stood behind a wait for a staging area is served") {
  for (const bool at_once : {true, false}) {
    ResourceManager state;
    const AttrMap attrs = area(kInt, {{"capacity", 1}});
    const TestedOp stage("Stage", kInt, attrs), unstage("Unstage", {}, attrs),
        peek("StagePeek", kInt, attrs);
    // A peek that waits for a later tuple does not keep others waiting.
    Call far(peek, {one(7)}, &state);
    far.start(at_once);
    Call first(unstage, {}, &state), second(unstage, {}, &state);
    first.start(at_once);
    second.start(at_once);
    first.cancel();
    CHECK(first.status().code() == Code::kCancelled);
    CHECK(Call(stage, {one(1)}, &state).start().status().ok());
    expect_close(second.output(), one(1));
    CHECK(count(state, "StageSize", kInt) == 0);
    // The same of those that put.
    CHECK(Call(stage, {one(2)}, &state).start().status().ok());
    Call third(stage, {one(3)}, &state), fourth(stage, {one(4)}, &state);
    third.start(at_once);
    fourth.start(at_once);
    third.cancel();
    CHECK(third.status().code() == Code::kCancelled);
    CHECK_FALSE(fourth.is_over());
    expect_close(Call(unstage, {}, &state).start().output(), one(2));
    CHECK(fourth.status().ok());
    expect_close(Call(unstage, {}, &state).start().output(), one(4));
    CHECK(count(state, "StageSize", kInt) == 0);
    far.cancel();
  }
}

TEST_CASE("a staging area counts the bytes of what it has, and no others") {
  // Whatever is refused, cancelled, taken or cleared, twelve bytes fit.
  ResourceManager state;
  const AttrMap attrs = area(kInt, {{"memory_limit", 12}});
  const TestedOp stage("Stage", kInt, attrs), unstage("Unstage", {}, attrs);
  const auto put = [&](const Tensor& value) {
    Call call(stage, {value}, &state);
    call.start();
    if (!call.is_over()) call.cancel();
    return call.status().code();
  };
  const auto is_empty = [&] {
    const bool fits = put(parts({1, 2, 3})) == Code::kOk;
    return fits && Call(unstage, {}, &state).start().status().ok();
  };
  CHECK(put(parts({1, 2, 3, 4})) == Code::kResourceExhausted);
  CHECK(is_empty());
  CHECK(put(parts({1, 2})) == Code::kOk);
  CHECK(put(parts({1, 2})) == Code::kCancelled);
  CHECK(put(one(1)) == Code::kOk);
  CHECK(put(one(1)) == Code::kCancelled);
  CHECK(Call(unstage, {}, &state).start().status().ok());
  CHECK(put(parts({1, 2})) == Code::kOk);
  CHECK(call_op(state, "StageClear", {}, attrs).ok());
  CHECK(is_empty());
  // An unstage of other types takes nothing.
  CHECK(put(one(1)) == Code::kOk);
  const TestedOp other("Unstage", {}, area({DataType::kFloat}));
  CHECK(Call(other, {}, &state).start().status().code() ==
        Code::kInvalidArgument);
  CHECK(put(parts({1, 2, 3})) == Code::kCancelled);
  expect_close(Call(unstage, {}, &state).start().output(), one(1));
  CHECK(is_empty());
}

TEST_CASE("a staging area that is cleared lets those go that wait to put") {
  ResourceManager state;
  const AttrMap attrs = area(kInt, {{"capacity", 1}});
  const TestedOp stage("Stage", kInt, attrs), unstage("Unstage", {}, attrs);
  CHECK(Call(stage, {one(1)}, &state).start().status().ok());
  Call waits(stage, {one(2)}, &state);
  waits.start();
  CHECK_FALSE(waits.is_over());
  CHECK(call_op(state, "StageClear", {}, attrs).ok());
  CHECK(waits.status().ok());
  expect_close(Call(unstage, {}, &state).start().output(), one(2));
}

TEST_CASE("a staging map counts tuples and bytes back, however a key ends") {
  for (const std::string start : {"Map", "OrderedMap"}) {
    CAPTURE(start);
    ResourceManager state;
    const AttrMap limits{{"capacity", 2}, {"memory_limit", 16}};
    const TestedOp both(
        start + "Stage",
        {DataType::kInt64, DataType::kInt32, DataType::kInt32,
         DataType::kInt32},
        area(kTwo,
             {{"fake_dtypes", kTwo}, {"capacity", 2}, {"memory_limit", 16}}));
    const TestedOp half(
        start + "Stage", {DataType::kInt64, DataType::kInt32, DataType::kInt32},
        area(kTwo,
             {{"fake_dtypes", kInt}, {"capacity", 2}, {"memory_limit", 16}}));
    const TestedOp take(start + "Unstage", {DataType::kInt64, DataType::kInt32},
                        area(kTwo, limits));
    const TestedOp take_one(start + "Unstage",
                            {DataType::kInt64, DataType::kInt32},
                            area(kInt, limits));
    const auto put = [&](int64_t k) {
      Call call(both, {key(k), parts({0, 1}), one(1), one(2)}, &state);
      call.start();
      if (!call.is_over()) call.cancel();
      return call.status().code();
    };
    const auto put_half = [&](int64_t k, int part) {
      Call call(half, {key(k), parts({part}), one(7)}, &state);
      call.start();
      if (!call.is_over()) call.cancel();
      return call.status().code();
    };
    const auto taken = [&](int64_t k) {
      return Call(take, {key(k), parts({0, 1})}, &state)
          .start()
          .status()
          .code();
    };
    const auto is_empty = [&] {
      const bool fits = put(100) == Code::kOk && put(101) == Code::kOk;
      return fits && taken(100) == Code::kOk && taken(101) == Code::kOk &&
             count(state, start + "Size", kTwo) == 0 &&
             count(state, start + "IncompleteSize", kTwo) == 0;
    };
    CHECK(is_empty());
    // Put twice: the second tuple is dropped, and its bytes are not counted.
    CHECK(put(1) == Code::kOk);
    CHECK(put(1) == Code::kOk);
    CHECK(count(state, start + "Size", kTwo) == 1);
    CHECK(put(2) == Code::kOk);
    CHECK(put(3) == Code::kCancelled);
    CHECK(taken(1) == Code::kOk);
    CHECK(taken(2) == Code::kOk);
    CHECK(is_empty());
    // A part that is refused is not counted, nor is one that is cancelled.
    CHECK(put_half(1, 0) == Code::kOk);
    CHECK(put_half(1, 0) == Code::kInvalidArgument);
    CHECK(put(2) == Code::kOk);
    CHECK(put_half(1, 1) == Code::kOk);
    CHECK(put(3) == Code::kCancelled);
    CHECK(taken(1) == Code::kOk);
    CHECK(taken(2) == Code::kOk);
    CHECK(is_empty());
    // Taken by parts, where one of them is refused.
    CHECK(put(1) == Code::kOk);
    const auto take_part = [&](int part) {
      return Call(take_one, {key(1), parts({part})}, &state)
          .start()
          .status()
          .code();
    };
    CHECK(take_part(0) == Code::kOk);
    CHECK(take_part(0) == Code::kInvalidArgument);
    CHECK(taken(1) == Code::kInvalidArgument);
    CHECK(take_part(1) == Code::kOk);
    CHECK(is_empty());
    CHECK(put_half(1, 0) == Code::kOk);
    CHECK(put(2) == Code::kOk);
    CHECK(call_op(state, start + "Clear", {}, area(kTwo, limits)).ok());
    CHECK(is_empty());
  }
}

TEST_CASE("a wait for a key that is cancelled leaves the key to the next") {
  ResourceManager state;
  const TestedOp stage(
      "MapStage",
      {DataType::kInt64, DataType::kInt32, DataType::kInt32, DataType::kInt32},
      area(kTwo, {{"fake_dtypes", kTwo}}));
  const TestedOp take("MapUnstage", {DataType::kInt64, DataType::kInt32},
                      area(kTwo));
  Call first(take, {key(1), parts({0, 1})}, &state);
  Call second(take, {key(1), parts({0, 1})}, &state);
  first.start();
  second.start();
  first.cancel();
  CHECK(Call(stage, {key(1), parts({0, 1}), one(5), one(6)}, &state)
            .start()
            .status()
            .ok());
  CHECK(first.status().code() == Code::kCancelled);
  CHECK(first.answers() == 1);
  expect_close(second.output(1), one(6));
  CHECK(count(state, "MapSize", kTwo) == 0);
}

namespace {

// Of float[2] or rows of that.
struct TestedAccumulator {
  explicit TestedAccumulator(PartialShape shape = {2}) {
    handle = (*call_op(state, "ResourceConditionalAccumulator", {},
                       {{"dtype", DataType::kFloat},
                        {"shape", shape},
                        {"shared_name", "a"},
                        {"reduction_type", "MEAN"}}))[0];
  }
  Status apply(int64_t step, const Tensor& gradient) {
    return call_op(state, "ResourceAccumulatorApplyGradient",
                   {handle, key(step), gradient})
        .status();
  }
  int number() {
    return (*call_op(state, "ResourceAccumulatorNumAccumulated", {handle}))[0]
        .scalar_value<int32_t>();
  }

  ResourceManager state;
  const TestedOp take{"ResourceAccumulatorTakeGradient",
                      {DataType::kResource, DataType::kInt32},
                      {{"dtype", DataType::kFloat}}};
  Tensor handle;
};

}  // namespace

TEST_CASE("what stood behind a take of an accumulator is served") {
  for (const bool at_once : {true, false}) {
    TestedAccumulator accumulator;
    Call two(accumulator.take, {accumulator.handle, one(2)},
             &accumulator.state);
    Call next(accumulator.take, {accumulator.handle, one(1)},
              &accumulator.state);
    two.start(at_once);
    next.start(at_once);
    CHECK(accumulator.apply(0, Tensor::vector<float>({1, 2})).ok());
    CHECK_FALSE(next.is_over());
    two.cancel();
    CHECK(two.status().code() == Code::kCancelled);
    expect_close(next.output(), Tensor::vector<float>({1, 2}));
    CHECK(accumulator.number() == 0);
    // One was taken: the next is of step 1.
    CHECK(accumulator.apply(0, Tensor::vector<float>({1, 2})).ok());
    CHECK(accumulator.number() == 0);
    CHECK(accumulator.apply(1, Tensor::vector<float>({1, 2})).ok());
    CHECK(accumulator.number() == 1);
  }
}

TEST_CASE("a gradient that is refused or lacks memory is not counted") {
  TestedAccumulator any{PartialShape()};
  CHECK(any.apply(0, Tensor::vector<float>({1, 2})).ok());
  CHECK(any.apply(0, Tensor::vector<float>({1, 2, 3})).code() ==
        Code::kInvalidArgument);
  CHECK(any.number() == 1);
  Call first(any.take, {any.handle, one(1)}, &any.state);
  expect_close(first.start().output(), Tensor::vector<float>({1, 2}));
  // After it was taken, the next may have another shape.
  CHECK(any.apply(1, Tensor::vector<float>({1, 2, 3})).ok());
  CHECK(any.number() == 1);

  const TestedOp apply(
      "ResourceAccumulatorApplyGradient",
      {DataType::kResource, DataType::kInt64, DataType::kFloat},
      {{"dtype", DataType::kFloat}});
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    TestedAccumulator accumulator;
    CHECK(accumulator.apply(0, Tensor::vector<float>({1, 2})).ok());
    Call more(apply,
              {accumulator.handle, key(0), Tensor::vector<float>({3, 6})},
              &accumulator.state);
    FailAllocation fail(k);
    more.start();
    fail.stop();
    const bool is_there = more.status().ok();
    CHECK(accumulator.number() == (is_there ? 2 : 1));
    Call taken(accumulator.take, {accumulator.handle, one(1)},
               &accumulator.state);
    expect_close(taken.start().output(), is_there
                                             ? Tensor::vector<float>({2, 4})
                                             : Tensor::vector<float>({1, 2}));
    if (!fail.failed()) break;
  }
}

TEST_CASE("a take of an accumulator that lacks memory takes nothing") {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    TestedAccumulator accumulator;
    CHECK(accumulator.apply(0, Tensor::vector<float>({1, 2})).ok());
    CHECK(accumulator.apply(0, Tensor::vector<float>({3, 6})).ok());
    Call failing(accumulator.take, {accumulator.handle, one(2)},
                 &accumulator.state);
    FailAllocation fail(k);
    failing.start();
    fail.stop();
    if (failing.status().ok()) {
      CHECK(accumulator.number() == 0);
      if (!fail.failed()) break;
      continue;
    }
    CHECK(accumulator.number() == 2);
    // It is still that step.
    CHECK(accumulator.apply(0, Tensor::vector<float>({5, 10})).ok());
    Call taken(accumulator.take, {accumulator.handle, one(3)},
               &accumulator.state);
    expect_close(taken.start().output(), Tensor::vector<float>({3, 6}));
  }
}

TEST_CASE("a sparse gradient that lacks memory is not there in part") {
  const TestedOp make("SparseConditionalAccumulator", {},
                      {{"dtype", DataType::kFloat},
                       {"shape", PartialShape({4, 2})},
                       {"reduction_type", "MEAN"}});
  const TestedOp apply(
      "SparseAccumulatorApplyGradient",
      {make_ref(DataType::kString), DataType::kInt64, DataType::kInt64,
       DataType::kFloat, DataType::kInt64},
      {{"dtype", DataType::kFloat}, {"has_known_shape", true}});
  const TestedOp take("SparseAccumulatorTakeGradient",
                      {make_ref(DataType::kString), DataType::kInt32},
                      {{"dtype", DataType::kFloat}});
  const TestedOp number("AccumulatorNumAccumulated",
                        {make_ref(DataType::kString)});
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    ResourceManager state;
    Call made(make, {}, &state);
    const Tensor handle = made.start().output();
    const auto inputs = [&](std::initializer_list<int64_t> indices,
                            const Tensor& values, int64_t step = 0) {
      return std::vector<Tensor>{handle, key(step),
                                 Tensor::vector<int64_t>(indices), values,
                                 Tensor::vector<int64_t>({4, 2})};
    };
    REQUIRE(Call(apply, inputs({2, 0}, Tensor::of<float>({2, 2}, {3, 4, 1, 2})),
                 &state)
                .start()
                .status()
                .ok());
    Call more(apply, inputs({2, 3}, Tensor::of<float>({2, 2}, {5, 6, 7, 8})),
              &state);
    FailAllocation fail(k);
    more.start();
    fail.stop();
    const bool is_there = more.status().ok();
    const auto count_is = [&](int wanted) {
      Call call(number, {handle}, &state);
      return call.start().output().scalar_value<int32_t>() == wanted;
    };
    CHECK(count_is(is_there ? 2 : 1));
    Call failing(take, {handle, one(1)}, &state);
    FailAllocation fail_take(k);
    failing.start();
    fail_take.stop();
    Call again(take, {handle, one(1)}, &state);
    if (!failing.status().ok()) again.start();
    const Call& taken = failing.status().ok() ? failing : again;
    expect_close(taken.output(0), is_there ? Tensor::vector<int64_t>({0, 2, 3})
                                           : Tensor::vector<int64_t>({0, 2}));
    expect_close(taken.output(1),
                 is_there ? Tensor::of<float>({3, 2}, {1, 2, 4, 5, 7, 8})
                          : Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
    // The next step begins with no rows.
    CHECK(count_is(0));
    REQUIRE(
        Call(apply, inputs({1}, Tensor::of<float>({1, 2}, {9, 9}), 1), &state)
            .start()
            .status()
            .ok());
    Call next(take, {handle, one(1)}, &state);
    expect_close(next.start().output(0), Tensor::vector<int64_t>({1}));
    if (!fail.failed() && !fail_take.failed()) break;
  }
}

TEST_CASE(
    "an accumulator without memory for tensors counts and keeps as before") {
  const Tensor ones = Tensor::of<float>({32}, std::vector<float>(32, 1.f));
  const Tensor twos = Tensor::of<float>({32}, std::vector<float>(32, 2.f));
  TestedAccumulator accumulator({32});
  const TestedOp apply(
      "ResourceAccumulatorApplyGradient",
      {DataType::kResource, DataType::kInt64, DataType::kFloat},
      {{"dtype", DataType::kFloat}});
  CHECK(accumulator.apply(0, ones).ok());
  CHECK(
      without_tensor_memory(apply, {accumulator.handle, key(0), ones}).code() ==
      Code::kResourceExhausted);
  CHECK(accumulator.number() == 1);
  CHECK(without_tensor_memory(accumulator.take, {accumulator.handle, one(1)})
            .code() == Code::kResourceExhausted);
  CHECK(accumulator.number() == 1);
  // It is still step 0, and the sum is that of the first.
  const Tensor threes = Tensor::of<float>({32}, std::vector<float>(32, 3.f));
  CHECK(accumulator.apply(0, threes).ok());
  Call taken(accumulator.take, {accumulator.handle, one(2)},
             &accumulator.state);
  expect_close(taken.start().output(), twos);
}

TEST_CASE("a barrier without memory for tensors gives nothing away") {
  TestedBarrier barrier;
  std::vector<std::string> keys;
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) {
    keys.push_back(std::to_string(i));
    values.push_back(float(i));
  }
  CHECK(barrier.insert(0, keys, values).ok());
  CHECK(barrier.insert(1, keys, values).ok());
  CHECK(without_tensor_memory(barrier.take, {barrier.handle, one(12)},
                              &barrier.state)
            .code() == Code::kResourceExhausted);
  CHECK(barrier.size("BarrierReadySize") == 12);
  Call taken(barrier.take, {barrier.handle, one(12)}, &barrier.state);
  taken.start();
  expect_close(taken.output(2), Tensor::of<float>({12}, values));
}
