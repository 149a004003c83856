// What a queue is after an operation on it has failed or was cancelled: its
// elements are what they were, and it serves those that wait behind.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "tests/devices/state/no_tensor_memory.h"
#include "tests/devices/state/tested_queue.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::devices;
using Shapes = std::vector<PartialShape>;

namespace {

Tensor one(int value) { return Tensor::scalar(value); }

constexpr const char* kOps[] = {"FIFOQueueV2", "PaddingFIFOQueueV2",
                                "RandomShuffleQueueV2", "PriorityQueueV2"};

// Of int32 scalars, or of rows of two int32; where it is by priority, of an
// int64 before them.
struct AnyQueue {
  explicit AnyQueue(std::string_view op, AttrMap attrs = {},
                    PartialShape shape = PartialShape::scalar())
      : has_priority(op == "PriorityQueueV2"),
        queue(op, {DataType::kInt32}, types(), with(std::move(attrs), shape)) {}

  Types types() const {
    return has_priority ? Types{DataType::kInt64, DataType::kInt32}
                        : Types{DataType::kInt32};
  }
  static AttrMap with(AttrMap attrs, const PartialShape& shape) {
    attrs.emplace("shapes", Shapes{shape});
    return attrs;
  }
  // The priority is the value.
  std::vector<Tensor> element(int value) const {
    std::vector<Tensor> inputs = {queue.handle, one(value)};
    if (has_priority)
      inputs.insert(inputs.begin() + 1, Tensor::scalar<int64_t>(value));
    return inputs;
  }
  std::vector<Tensor> elements(const std::vector<int32_t>& values) const {
    std::vector<Tensor> inputs = {
        queue.handle, Tensor::of<int32_t>({int64_t(values.size())}, values)};
    if (has_priority)
      inputs.insert(inputs.begin() + 1,
                    Tensor::of<int64_t>(
                        {int64_t(values.size())},
                        std::vector<int64_t>(values.begin(), values.end())));
    return inputs;
  }
  Status put(int value) const {
    return Call(queue.put, element(value)).start().status();
  }
  int value_of(const Call& call) const {
    return call.output(has_priority ? 1 : 0).scalar_value<int32_t>();
  }
  // All that is there, taken one by one.
  std::vector<int> rest() {
    std::vector<int> values;
    while (queue.size() > 0) {
      Call call(queue.take, {queue.handle});
      call.start();
      values.push_back(value_of(call));
    }
    return values;
  }

  bool has_priority;
  TestedQueue queue;
};

std::vector<int> sorted(std::vector<int> values) {
  std::ranges::sort(values);
  return values;
}

}  // namespace

TEST_CASE(
    "elements of a padding queue that cannot be batched keep their order") {
  TestedQueue queue("PaddingFIFOQueueV2", {DataType::kInt32, DataType::kFloat},
                    {{"shapes", Shapes{PartialShape::scalar(), {-1, -1}}}});
  // None has elements, but a batch of the largest shape has too many.
  constexpr int64_t kLong = int64_t{1} << 40;
  for (int i = 0; i < 4; ++i)
    CHECK(queue
              .must_put({one(i), Tensor::make(DataType::kFloat,
                                              i % 2 == 0 ? Shape({0, kLong})
                                                         : Shape({kLong, 0}))})
              .ok());
  for (int round = 0; round < 3; ++round) {
    Call many(queue.take_many, {queue.handle, one(3)});
    many.start();
    CHECK(many.status().code() == Code::kInvalidArgument);
    CHECK(queue.size() == 4);
  }
  for (int i = 0; i < 4; ++i) {
    Call take(queue.take, {queue.handle});
    take.start();
    CHECK(take.output(0).scalar_value<int32_t>() == i);
    CHECK(take.output(1).dim(i % 2) == 0);
  }
  CHECK(queue.size() == 0);
}

TEST_CASE("a batch for which there is no memory leaves a queue as it was") {
  for (const std::string op : kOps) {
    CAPTURE(op);
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      AnyQueue any(op);
      for (const int value : {2, 5, 3, 8, 7}) REQUIRE(any.put(value).ok());
      Call many(any.queue.take_many, {any.queue.handle, one(4)});
      FailAllocation fail(k);
      many.start();
      fail.stop();
      if (many.status().ok()) {
        CHECK(any.queue.size() == 1);
        if (!fail.failed()) break;
        continue;
      }
      CHECK(many.status().code() == Code::kResourceExhausted);
      CHECK(any.queue.size() == 5);
      // It takes more, and gives all.
      CHECK(any.put(4).ok());
      const std::vector<int> rest = any.rest();
      if (op == "RandomShuffleQueueV2" || op == "PriorityQueueV2")
        CHECK(sorted(rest) == std::vector{2, 3, 4, 5, 7, 8});
      else
        CHECK(rest == std::vector{2, 5, 3, 8, 7, 4});
      if (any.has_priority) CHECK(std::ranges::is_sorted(rest));
    }
  }
}

TEST_CASE(
    "rows for which there is no memory are not in a queue, none of them") {
  for (const std::string op : kOps) {
    CAPTURE(op);
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      AnyQueue any(op);
      REQUIRE(any.put(1).ok());
      Call many(any.queue.put_many, any.elements({2, 3, 4, 5, 6, 7, 8, 9, 10}));
      FailAllocation fail(k);
      many.start();
      fail.stop();
      if (many.status().ok()) {
        CHECK(any.queue.size() == 10);
        if (!fail.failed()) break;
        continue;
      }
      CHECK(many.status().code() == Code::kResourceExhausted);
      CHECK(any.queue.size() == 1);
      CHECK(any.put(2).ok());
      CHECK(sorted(any.rest()) == std::vector{1, 2});
    }
  }
}

TEST_CASE("an element for which there is no memory is not in a queue") {
  for (const std::string op : kOps) {
    CAPTURE(op);
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      AnyQueue any(op);
      // The next one needs more room.
      for (int i = 0; i < 8; ++i) REQUIRE(any.put(i).ok());
      Call put(any.queue.put, any.element(8));
      FailAllocation fail(k);
      put.start();
      fail.stop();
      CHECK(any.queue.size() == (put.status().ok() ? 9 : 8));
      if (put.status().ok() && !fail.failed()) break;
      if (!put.status().ok()) CHECK(any.put(8).ok());
      CHECK(sorted(any.rest()) == std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8});
    }
  }
}

TEST_CASE("a batch whose tensor cannot be had goes back in its order") {
  for (const std::string op : kOps) {
    CAPTURE(op);
    AnyQueue any(op);
    const std::vector<int> values = {9, 2, 7, 4, 5, 6, 3, 8, 1, 0};
    for (const int value : values) REQUIRE(any.put(value).ok());
    CHECK(without_tensor_memory(any.queue.take_many, {any.queue.handle, one(9)})
              .code() == Code::kResourceExhausted);
    CHECK(any.queue.size() == 10);
    CHECK(any.put(10).ok());
    std::vector<int> all = values;
    all.push_back(10);
    const std::vector<int> rest = any.rest();
    CHECK(sorted(rest) == sorted(all));
    if (any.has_priority) CHECK(std::ranges::is_sorted(rest));
    if (op == "FIFOQueueV2" || op == "PaddingFIFOQueueV2") CHECK(rest == all);
  }
}

TEST_CASE("what stood behind a dequeue that is cancelled is served") {
  for (const std::string op : kOps) {
    CAPTURE(op);
    for (const bool at_once : {true, false}) {
      AnyQueue any(op, {{"capacity", 4}});
      Call many(any.queue.take_many, {any.queue.handle, one(3)});
      many.start(at_once);
      Call up_to(any.queue.take_up_to, {any.queue.handle, one(2)});
      up_to.start(at_once);
      Call take(any.queue.take, {any.queue.handle});
      take.start(at_once);
      CHECK(any.put(1).ok());
      CHECK(any.put(2).ok());
      CHECK_FALSE(up_to.is_over());
      CHECK_FALSE(take.is_over());
      many.cancel();
      CHECK(many.status().code() == Code::kCancelled);
      CHECK(up_to.output().num_elements() == 2);
      CHECK_FALSE(take.is_over());
      CHECK(any.put(3).ok());
      CHECK(any.value_of(take) == 3);
      CHECK(any.queue.size() == 0);
      CHECK(any.queue.describe_state() == "queue \"q\" has 0 of 4 elements");
    }
  }
}

TEST_CASE("an enqueue that the reserved elements kept out goes on waiting") {
  // A cancelled dequeue gives back what was reserved for it, which fills it.
  AnyQueue any("FIFOQueueV2", {{"capacity", 1}});
  Call many(any.queue.take_many, {any.queue.handle, one(3)});
  many.start();
  for (const int value : {1, 2}) CHECK(any.put(value).ok());
  many.cancel();
  Call put(any.queue.put, any.element(3));
  put.start();
  CHECK_FALSE(put.is_over());
  CHECK(any.queue.take_int() == 1);
  CHECK_FALSE(put.is_over());
  CHECK(any.queue.take_int() == 2);
  CHECK(put.status().ok());
  CHECK(any.queue.take_int() == 3);
}

TEST_CASE("what stood behind an enqueue that is cancelled is served") {
  for (const std::string op : kOps) {
    CAPTURE(op);
    for (const bool at_once : {true, false}) {
      AnyQueue any(op, {{"capacity", 2}});
      CHECK(any.put(1).ok());
      CHECK(any.put(2).ok());
      Call first(any.queue.put, any.element(3));
      first.start(at_once);
      Call second(any.queue.put, any.element(4));
      second.start(at_once);
      const TestedOp close_op("QueueCloseV2", {DataType::kResource});
      Call close(close_op, {any.queue.handle});
      close.start(at_once);
      CHECK_FALSE(close.is_over());
      first.cancel();
      CHECK(first.status().code() == Code::kCancelled);
      CHECK_FALSE(second.is_over());
      CHECK_FALSE(close.is_over());
      second.cancel();
      CHECK(close.status().ok());
      CHECK(sorted(any.rest()) == std::vector{1, 2});
    }
  }
}

TEST_CASE("a closing that is cancelled closes nothing") {
  AnyQueue any("FIFOQueueV2", {{"capacity", 1}});
  CHECK(any.put(1).ok());
  Call put(any.queue.put, any.element(2));
  put.start();
  const TestedOp close_op("QueueCloseV2", {DataType::kResource});
  Call close(close_op, {any.queue.handle});
  close.start();
  close.cancel();
  CHECK(close.status().code() == Code::kCancelled);
  CHECK(any.queue.take_int() == 1);
  CHECK(put.status().ok());
  CHECK(any.queue.take_int() == 2);
  CHECK(any.put(3).ok());
  CHECK(any.queue.take_int() == 3);
}

TEST_CASE("many that are cancelled part by part are put in up to there") {
  AnyQueue any("FIFOQueueV2", {{"capacity", 2}});
  Call many(any.queue.put_many, any.elements({1, 2, 3, 4, 5}));
  many.start();
  Call behind(any.queue.put, any.element(6));
  behind.start();
  CHECK(any.queue.take_int() == 1);
  CHECK(any.queue.size() == 2);
  many.cancel();
  CHECK(many.status().code() == Code::kCancelled);
  CHECK(many.answers() == 1);
  CHECK_FALSE(behind.is_over());
  CHECK(any.queue.take_int() == 2);
  CHECK(behind.status().ok());
  CHECK(any.rest() == std::vector{3, 6});
}

TEST_CASE("a part of many that lacks memory ends them, and others go on") {
  bool has_failed = false;
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    AnyQueue any("FIFOQueueV2", {{"capacity", 2}});
    Call many(any.queue.put_many, any.elements({1, 2, 3, 4, 5}));
    many.start();
    Call behind(any.queue.put, any.element(6));
    behind.start();
    Call take(any.queue.take, {any.queue.handle});
    FailAllocation fail(k);
    take.start();
    fail.stop();
    if (take.status().ok() && many.is_over()) {
      has_failed = true;
      CHECK(many.status().code() == Code::kResourceExhausted);
      CHECK(behind.is_over());
      CHECK(any.rest() == std::vector{2, 6});
      continue;
    }
    many.cancel();
    if (!behind.is_over()) behind.cancel();
    if (!fail.failed()) break;
  }
  CHECK(has_failed);
}

TEST_CASE("a dequeue whose step was answered leaves the element to the next") {
  AnyQueue any("FIFOQueueV2");
  Call first(any.queue.take, {any.queue.handle});
  first.start();
  Call second(any.queue.take, {any.queue.handle});
  second.start();
  first.close_gate();
  CHECK(any.put(1).ok());
  CHECK(first.status().code() == Code::kCancelled);
  CHECK(any.value_of(second) == 1);
}

TEST_CASE("a dequeue that fails leaves its elements to those behind it") {
  TestedQueue queue("PaddingFIFOQueueV2", {DataType::kFloat},
                    {{"shapes", Shapes{{-1, -1}}}});
  constexpr int64_t kLong = int64_t{1} << 40;
  Call many(queue.take_many, {queue.handle, one(2)});
  many.start();
  Call first(queue.take, {queue.handle}), second(queue.take, {queue.handle});
  first.start();
  second.start();
  CHECK(queue.must_put({Tensor::make(DataType::kFloat, {0, kLong})}).ok());
  CHECK_FALSE(first.is_over());
  CHECK(queue.must_put({Tensor::make(DataType::kFloat, {kLong, 0})}).ok());
  CHECK(many.status().code() == Code::kInvalidArgument);
  CHECK(first.output().dim(0) == 0);
  CHECK(second.output().dim(1) == 0);
  CHECK(queue.describe_state() == "queue \"q\" has 0 elements");
}

TEST_CASE("what a refused operation asked of a queue is not done in part") {
  AnyQueue any("FIFOQueueV2", {{"capacity", 3}});
  CHECK(any.put(1).ok());
  CHECK(any.put(2).ok());
  const TestedOp floats("QueueEnqueueV2", with_handle({DataType::kFloat}),
                        {{"Tcomponents", Types{DataType::kFloat}}});
  CHECK(Call(floats, {any.queue.handle, Tensor::scalar(1.0f)})
            .start()
            .status()
            .code() == Code::kInvalidArgument);
  CHECK(Call(any.queue.take_many, {any.queue.handle, one(-1)})
            .start()
            .status()
            .code() == Code::kInvalidArgument);
  CHECK(any.queue.close().ok());
  // More than there are: none of them is taken.
  CHECK(Call(any.queue.take_many, {any.queue.handle, one(3)})
            .start()
            .status()
            .code() == Code::kOutOfRange);
  CHECK(any.put(3).code() == Code::kCancelled);
  CHECK(any.rest() == std::vector{1, 2});
}

TEST_CASE("a shuffling queue counts what it keeps after a cancellation, too") {
  AnyQueue any("RandomShuffleQueueV2",
               {{"capacity", 10}, {"min_after_dequeue", 2}});
  Call many(any.queue.take_many, {any.queue.handle, one(2)});
  many.start();
  for (const int value : {1, 2, 3}) CHECK(any.put(value).ok());
  CHECK(any.queue.size() == 2);
  many.cancel();
  CHECK(any.queue.size() == 3);
  Call take(any.queue.take, {any.queue.handle});
  CHECK(take.start().status().ok());
  Call waits(any.queue.take, {any.queue.handle});
  waits.start();
  CHECK_FALSE(waits.is_over());
  CHECK(any.queue.close().ok());
  CHECK(waits.status().ok());
  CHECK(any.queue.size() == 1);
}

TEST_CASE("a name that a queue of another kind was refused stays the first's") {
  AnyQueue any("FIFOQueueV2", {{"capacity", 2}});
  CHECK(any.put(1).ok());
  CHECK(call_op(any.queue.state, "FIFOQueueV2", {},
                {{"component_types", Types{DataType::kFloat}},
                 {"shared_name", "q"}})
            .status()
            .code() == Code::kInvalidArgument);
  CHECK(any.queue.state.size() == 1);
  CHECK(any.queue.take_int() == 1);
}
