// Kernels of queues, without an engine: the order of elements, waits, closing,
// cancelling, and errors.
#include "devices/state/queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "tests/devices/state/calls.h"
#include "tests/devices/state/tested_queue.h"

using namespace tagflow;
using namespace tagflow::devices;
using Shapes = std::vector<PartialShape>;

namespace {

TestedQueue ints(int capacity = -1, std::string_view op = "FIFOQueueV2") {
  return TestedQueue(
      op, {DataType::kInt32},
      {{"capacity", capacity}, {"shapes", Shapes{PartialShape::scalar()}}});
}

Tensor one(int value) { return Tensor::scalar(value); }
Tensor some(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

}  // namespace

TEST_CASE("a queue gives elements in the order in which they came") {
  TestedQueue queue("FIFOQueueV2", {DataType::kInt32, DataType::kString});
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i)
      CHECK(queue.must_put({one(i), Tensor::scalar(std::to_string(i))}).ok());
    CHECK(queue.size() == 20);
    for (int i = 0; i < 20; ++i) {
      Call call(queue.take, {queue.handle});
      call.start();
      expect_close(call.output(0), one(i));
      expect_close(call.output(1), Tensor::scalar(std::to_string(i)));
    }
  }
}

TEST_CASE("a queue takes many elements as rows, and gives many as one tensor") {
  TestedQueue queue("FIFOQueueV2", {DataType::kFloat, DataType::kString},
                    {{"shapes", Shapes{{2}, PartialShape::scalar()}}});
  Call put(queue.put_many,
           queue.inputs({Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}),
                         Tensor::vector<std::string>({"a", "b", "c"})}));
  CHECK(put.start().status().ok());
  Call take(queue.take_many, {queue.handle, one(2)});
  take.start();
  expect_close(take.output(0), Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  expect_close(take.output(1), Tensor::vector<std::string>({"a", "b"}));
  Call none(queue.take_many, {queue.handle, one(0)});
  none.start();
  expect_close(none.output(0), Tensor::of<float>({0, 2}, {}));
  CHECK(queue.size() == 1);
}

TEST_CASE("smoke: a dequeue waits for an element, an enqueue for space") {
  for (const bool at_once : {true, false}) {
    TestedQueue queue = ints(1);
    Call first(queue.take, {queue.handle}), second(queue.take, {queue.handle});
    first.start(at_once);
    second.start(at_once);
    CHECK_FALSE(first.is_over());
    CHECK(first.waits_for() ==
          "queue \"q\" has 0 of 1 element, 2 dequeues wait");
    CHECK(queue.must_put({one(1)}).ok());
    CHECK(first.output().scalar_value<int>() == 1);
    CHECK_FALSE(second.is_over());
    CHECK(queue.must_put({one(2)}).ok());
    CHECK(second.output().scalar_value<int>() == 2);

    CHECK(queue.must_put({one(3)}).ok());
    Call put(queue.put, queue.inputs({one(4)}));
    put.start(at_once);
    CHECK_FALSE(put.is_over());
    CHECK(put.waits_for() == "queue \"q\" has 1 of 1 element, 1 enqueue waits");
    CHECK(queue.take_int() == 3);
    CHECK(put.status().ok());
    CHECK(put.answers() == 1);
    CHECK(queue.take_int() == 4);
  }
}

TEST_CASE("a queue serves waiting calls before later ones") {
  TestedQueue queue = ints(2);
  Call many(queue.take_many, {queue.handle, one(3)});
  many.start();
  Call late(queue.take, {queue.handle});
  late.start();
  for (int i = 0; i < 4; ++i) CHECK(queue.must_put({one(i)}).ok());
  expect_close(many.output(), some({0, 1, 2}));
  expect_close(late.output(), one(3));
}

TEST_CASE("2: a dequeue of more than the capacity has them kept for it") {
  TestedQueue queue = ints(2);
  Call many(queue.take_many, {queue.handle, one(5)});
  many.start();
  for (int i = 0; i < 4; ++i) CHECK(queue.must_put({one(i)}).ok());
  CHECK(queue.size() == 0);
  // Cancelled halfway, it puts them back in order, more than the capacity.
  many.cancel();
  CHECK(many.status().code() == Code::kCancelled);
  CHECK(queue.size() == 4);
  Call full(queue.put, queue.inputs({one(4)}));
  full.start();
  CHECK_FALSE(full.is_over());
  for (int i = 0; i < 5; ++i) CHECK(queue.take_int() == i);
  CHECK(full.status().ok());
}

TEST_CASE("a queue takes more elements than it has room for bit by bit") {
  TestedQueue queue = ints(2);
  Call many(queue.put_many, queue.inputs({some({0, 1, 2, 3, 4})}));
  many.start();
  CHECK(queue.size() == 2);
  Call behind(queue.put, queue.inputs({one(5)}));
  behind.start();
  for (int i = 0; i < 3; ++i) CHECK(queue.take_int() == i);
  CHECK(many.status().ok());
  CHECK_FALSE(behind.is_over());
  for (int i = 3; i < 6; ++i) CHECK(queue.take_int() == i);

  // What went in before a cancellation stays.
  Call cut(queue.put_many, queue.inputs({some({6, 7, 8, 9})}));
  cut.start();
  CHECK(queue.take_int() == 6);
  cut.cancel();
  CHECK(cut.status().code() == Code::kCancelled);
  CHECK(cut.answers() == 1);
  CHECK(queue.size() == 2);
  CHECK(queue.take_int() == 7);
}

TEST_CASE("a closed queue gives what it has, and takes nothing") {
  TestedQueue queue = ints();
  Call put(queue.put_many, queue.inputs({some({1, 2, 3})}));
  CHECK(put.start().status().ok());
  CHECK(queue.close().ok());
  expect_error(queue.close(), Code::kCancelled,
               "[QueueCloseV2] queue \"q\" is already closed");
  CHECK(queue.close(true).ok());
  expect_error(queue.must_put({one(4)}), Code::kCancelled,
               "[QueueEnqueueV2] queue \"q\" is closed");
  expect_error(Call(queue.put_many, queue.inputs({some({4})})).start().status(),
               Code::kCancelled, "queue \"q\" is closed");
  CHECK(Call(queue.put_many, queue.inputs({some({})})).start().status().ok());
  expect_error(Call(queue.take_many, {queue.handle, one(4)}).start().status(),
               Code::kOutOfRange,
               "[QueueDequeueManyV2] queue \"q\" is closed and has "
               "insufficient elements (requested 4, current size 3)");
  CHECK(queue.take_int() == 1);
  Call rest(queue.take_up_to, {queue.handle, one(5)});
  expect_close(rest.start().output(), some({2, 3}));
  expect_error(Call(queue.take_up_to, {queue.handle, one(5)}).start().status(),
               Code::kOutOfRange, "(requested 5, current size 0)");
  expect_error(Call(queue.take, {queue.handle}).start().status(),
               Code::kOutOfRange, "(requested 1, current size 0)");
  CHECK(queue.describe_state() ==
        "queue \"q\", which is closed, has 0 "
        "elements");
  CHECK((*call_op(queue.state, "QueueIsClosedV2", {queue.handle}))[0]
            .scalar_value<bool>());
}

TEST_CASE("a queue that is closed ends waiting dequeues, then enqueues") {
  TestedQueue queue = ints(1);
  CHECK(queue.must_put({one(1)}).ok());
  Call put(queue.put, queue.inputs({one(2)}));
  put.start();
  TestedOp close_op("QueueCloseV2", {DataType::kResource});
  Call close(close_op, {queue.handle});
  close.start();
  // It stands in line behind what waits.
  CHECK_FALSE(close.is_over());
  Call many(queue.take_many, {queue.handle, one(3)});
  many.start();
  CHECK(put.status().ok());
  CHECK(close.status().ok());
  expect_error(many.status(), Code::kOutOfRange,
               "(requested 3, current size 2)");
  CHECK(queue.take_int() == 1);
  CHECK(queue.take_int() == 2);
}

TEST_CASE("a queue that is closed may cancel waiting enqueues") {
  TestedQueue queue = ints(1);
  Call put(queue.put_many, queue.inputs({some({1, 2})}));
  put.start();
  CHECK(queue.close(true).ok());
  expect_error(put.status(), Code::kCancelled,
               "queue \"q\" was closed, which cancelled waiting");
  CHECK(queue.take_int() == 1);
  CHECK(queue.size() == 0);
}

TEST_CASE("a queue that has ended ends what waits, and all later use") {
  TestedQueue queue = ints(1);
  Call take(queue.take, {queue.handle}),
      many(queue.take_many, {queue.handle, one(2)});
  take.start();
  many.start();
  queue.state.reset(std::vector<std::string>{""});
  for (const Call* call : {&take, &many})
    expect_error(call->status(), Code::kCancelled,
                 "queue \"q\" is gone: its container was reset");
  expect_error(queue.must_put({one(1)}), Code::kCancelled, "was reset");
  Call late(queue.put, queue.inputs({one(1)}));
  expect_error(late.start(false).status(), Code::kCancelled, "was reset");
  expect_error(call_op(queue.state, "QueueSizeV2", {queue.handle}),
               Code::kCancelled, "was reset");
}

TEST_CASE("a step that was answered changes no queue") {
  TestedQueue queue = ints();
  Call put(queue.put, queue.inputs({one(1)}));
  put.close_gate();
  CHECK(put.start().status().code() == Code::kCancelled);
  CHECK(queue.size() == 0);
  Call take(queue.take, {queue.handle});
  take.start();
  take.close_gate();
  CHECK(queue.must_put({one(2)}).ok());
  CHECK(take.status().code() == Code::kCancelled);
  CHECK(queue.take_int() == 2);
}

TEST_CASE("a shuffling queue draws as TensorFlow does, and keeps its least") {
  const auto make = [](int seed, int least) {
    return TestedQueue("RandomShuffleQueueV2", {DataType::kInt32},
                       {{"shapes", Shapes{PartialShape::scalar()}},
                        {"capacity", 100},
                        {"min_after_dequeue", least},
                        {"seed", seed},
                        {"seed2", 5}});
  };
  for (const auto& [seed, drawn] :
       {std::pair(1, some({6, 9, 8, 1, 7, 0, 2, 5, 4, 3})),
        std::pair(77, some({9, 3, 6, 1, 0, 4, 2, 7, 8, 5}))}) {
    TestedQueue queue = make(seed, 0);
    Call put(queue.put_many,
             queue.inputs({some({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}));
    CHECK(put.start().status().ok());
    for (int i = 0; i < 4; ++i)
      CHECK(queue.take_int() == drawn.data<int32_t>()[i]);
    Call rest(queue.take_many, {queue.handle, one(6)});
    rest.start();
    for (int i = 0; i < 6; ++i)
      CHECK(rest.output().data<int32_t>()[i] == drawn.data<int32_t>()[4 + i]);
  }

  TestedQueue queue = make(3, 2);
  Call put(queue.put_many, queue.inputs({some({1, 2, 3})}));
  CHECK(put.start().status().ok());
  queue.take_int();
  Call two(queue.take_many, {queue.handle, one(2)});
  two.start();
  CHECK_FALSE(two.is_over());
  CHECK(queue.close().ok());
  CHECK(two.output().num_elements() == 2);
}

TEST_CASE("a priority queue keeps TensorFlow's order of equal priorities") {
  TestedQueue queue("PriorityQueueV2", {DataType::kString},
                    {DataType::kInt64, DataType::kString},
                    {{"shapes", Shapes{PartialShape::scalar()}}});
  Call put(queue.put_many,
           queue.inputs(
               {Tensor::vector<int64_t>({3, 1, 3, 1, 3, -2}),
                Tensor::vector<std::string>({"a", "b", "c", "d", "e", "f"})}));
  CHECK(put.start().status().ok());
  Call take(queue.take_many, {queue.handle, one(6)});
  take.start();
  expect_close(take.output(0), Tensor::vector<int64_t>({-2, 1, 1, 3, 3, 3}));
  expect_close(take.output(1),
               Tensor::vector<std::string>({"f", "b", "d", "c", "a", "e"}));
  expect_error(queue.must_put({one(1), Tensor::scalar("x")}),
               Code::kInvalidArgument,
               "component 0 of queue \"q\" takes int64[], not int32[]");
}

TEST_CASE("a padding queue pads elements to the largest shape") {
  TestedQueue queue("PaddingFIFOQueueV2", {DataType::kInt32, DataType::kString},
                    {{"shapes", Shapes{{-1, 2}, {-1}}}});
  CHECK(queue
            .must_put({Tensor::of<int32_t>({1, 2}, {1, 2}),
                       Tensor::vector<std::string>({"a", "b"})})
            .ok());
  CHECK(queue
            .must_put({Tensor::of<int32_t>({2, 2}, {3, 4, 5, 6}),
                       Tensor::vector<std::string>({})})
            .ok());
  Call take(queue.take_many, {queue.handle, one(2)});
  take.start();
  expect_close(take.output(0),
               Tensor::of<int32_t>({2, 2, 2}, {1, 2, 0, 0, 3, 4, 5, 6}));
  expect_close(take.output(1),
               Tensor::of<std::string>({2, 2}, {"a", "b", "", ""}));
  Call none(queue.take_many, {queue.handle, one(0)});
  expect_close(none.start().output(), Tensor::of<int32_t>({0, 0, 2}, {}));
  expect_error(queue.must_put({one(1), Tensor::vector<std::string>({})}),
               Code::kInvalidArgument,
               "component 0 of queue \"q\" takes int32[?,2], not int32[]");
}

TEST_CASE("a queue refuses elements that do not fit it") {
  TestedQueue queue("FIFOQueueV2", {DataType::kInt32, DataType::kFloat},
                    {{"shapes", Shapes{{2}, PartialShape::scalar()}}});
  const Tensor two = some({1, 2}), x = Tensor::scalar(1.0f);
  expect_error(queue.must_put({some({1}), x}), Code::kInvalidArgument,
               "[QueueEnqueueV2] component 0 of queue \"q\" takes int32[2], "
               "not int32[1]");
  expect_error(
      Call(queue.put_many, queue.inputs({two, Tensor::vector<float>({1, 2})}))
          .start()
          .status(),
      Code::kInvalidArgument,
      "takes rows of int32[2], but those of int32[2] are of shape []");
  expect_error(
      Call(queue.put_many, queue.inputs({Tensor::of<int32_t>({1, 2}, {1, 2}),
                                         Tensor::scalar(1.0f)}))
          .start()
          .status(),
      Code::kInvalidArgument,
      "takes rows of float[], but float[] is a scalar, which has no rows");
  expect_error(
      Call(queue.put_many, queue.inputs({Tensor::of<int32_t>({1, 2}, {1, 2}),
                                         Tensor::vector<float>({1, 2})}))
          .start()
          .status(),
      Code::kInvalidArgument,
      "the same number of rows, not int32[1,2] and float[2]");
  TestedOp three("QueueEnqueueV2", with_handle({DataType::kInt32}),
                 {{"Tcomponents", Types{DataType::kInt32}}});
  expect_error(Call(three, {queue.handle, two}).start().status(),
               Code::kInvalidArgument, "have 2 components, not 1");
  TestedOp other(
      "QueueDequeueV2", {DataType::kResource},
      {{"component_types", Types{DataType::kInt32, DataType::kString}}});
  expect_error(Call(other, {queue.handle}).start().status(),
               Code::kInvalidArgument,
               "component 1 of queue \"q\" is of float, not of string");
  expect_error(Call(queue.take_many, {queue.handle, one(-1)}).start().status(),
               Code::kInvalidArgument, "n must not be negative, but is -1");
  expect_error(Call(queue.take_many, {queue.handle, two}).start().status(),
               Code::kInvalidArgument, "n must be an int32 scalar");
  expect_error(Call(queue.take, {two}).start().status(), Code::kInvalidArgument,
               "must be the handle of one queue");
  Tensor empty = Tensor::make(DataType::kResource, {});
  expect_error(Call(queue.take, {empty}).start().status(),
               Code::kInvalidArgument,
               "must be one queue, not an empty handle");

  TestedQueue any("FIFOQueueV2", {DataType::kInt32});
  expect_error(Call(any.take_many, {any.handle, one(0)}).start().status(),
               Code::kInvalidArgument,
               "queue \"q\" does not specify the shapes of its components");
}

TEST_CASE("queues that cannot be are refused") {
  const auto refused = [](std::string_view op, AttrMap attrs,
                          std::string_view text) {
    attrs.emplace("component_types", Types{DataType::kInt32});
    expect_error(TestedOp(op, {}, std::move(attrs)).status(),
                 Code::kInvalidArgument, text);
  };
  refused("FIFOQueueV2", {{"capacity", 0}},
          "[FIFOQueueV2] node \"node\": the capacity must be positive, or -1 "
          "for no bound, not 0");
  refused("FIFOQueueV2", {{"shapes", Shapes{{-1}}}},
          "the shape of a component must be known, not [?]");
  refused("FIFOQueueV2", {{"shapes", Shapes{{1}, {2}}}},
          "there are 1 component type, but 2 shapes");
  refused("PaddingFIFOQueueV2", {}, "but 0 shapes");
  refused("PaddingFIFOQueueV2", {{"shapes", Shapes{PartialShape()}}},
          "the rank of a component must be known");
  refused("PriorityQueueV2", {{"shapes", Shapes{}}}, "but 0 shapes");
  refused("RandomShuffleQueueV2", {{"capacity", 5}, {"min_after_dequeue", 5}},
          "min_after_dequeue must be less than the capacity of 5, not 5");
  refused("RandomShuffleQueueV2", {{"min_after_dequeue", -1}},
          "min_after_dequeue must not be negative: -1");
  TestedOp timed(
      "QueueDequeueV2", {DataType::kResource},
      {{"component_types", Types{DataType::kInt32}}, {"timeout_ms", 5}});
  expect_error(timed.status(), Code::kInvalidArgument,
               "timeout_ms must be -1, not 5");
}

TEST_CASE("a name means one kind of queue") {
  const auto differs = [](std::string_view op, AttrMap attrs,
                          std::string_view text) {
    TestedQueue queue = ints(5);
    attrs.emplace("component_types", Types{DataType::kInt32});
    attrs.emplace("shared_name", "q");
    attrs.emplace("shapes", Shapes{PartialShape::scalar()});
    attrs.emplace("capacity", 5);
    expect_error(call_op(queue.state, op, {}, std::move(attrs)),
                 Code::kInvalidArgument, text);
  };
  differs("PaddingFIFOQueueV2", {},
          "[PaddingFIFOQueueV2] queue \"q\" is a FIFOQueue, but the node asks "
          "for a PaddingFIFOQueue");
  differs("FIFOQueueV2", {{"capacity", 6}},
          "queue \"q\" exists with capacity 5, but the node asks for 6");
  differs("FIFOQueueV2", {{"component_types", Types{DataType::kFloat}}},
          "exists with component types (int32), but the node asks for (float)");
  differs("FIFOQueueV2", {{"shapes", Shapes{{2}}}},
          "exists with components of shapes [], but the node asks for shapes "
          "[2]");
}

TEST_CASE("a queue shrinks its ring when large elements are gone") {
  const TestedOp op("NoOp", {});
  const StepInfo step;
  const Tag tag;
  const KernelContext context(&op.node(), {}, {}, &step, &tag);
  FifoElements elements(1);
  constexpr int kMany = 100'000;
  for (int i = 0; i < kMany; ++i) {
    Tensor value = one(i);
    REQUIRE(elements.reserve(context, 1, [] { return "q"; }).ok());
    elements.push(&value);
  }
  for (int i = 0; i < kMany; ++i) {
    Tensor value;
    elements.pop(&value);
    elements.trim();
    CHECK(value.scalar_value<int32_t>() == i);
  }
  CHECK(elements.size() == 0);
}

// --- Many threads -----------------------------------------------------------

// What went in comes out once, or is still there, and each putter's elements in
// their order; whatever is cancelled meanwhile.
TEST_CASE("a queue loses or doubles nothing if dequeues are cancelled") {
  constexpr int kPutters = 2, kTakers = 2, kEach = 50'000;
  for (const bool at_once : {true, false}) {
    TestedQueue queue = ints(64);
    std::atomic<int> takers{kTakers};
    std::vector<std::thread> threads;
    for (int p = 0; p < kPutters; ++p)
      threads.emplace_back([&, p] {
        for (int i = 0; i < kEach; ++i) {
          Call put(queue.put, queue.inputs({one(p * kEach + i)}));
          put.start(at_once);
          // Nobody takes any more.
          while (!put.is_over()) {
            if (takers.load() == 0) put.cancel();
            std::this_thread::yield();
          }
          if (!put.status().ok()) return;
        }
      });
    std::vector<std::vector<int>> taken(kTakers);
    for (int t = 0; t < kTakers; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          Call take(queue.take, {queue.handle});
          take.start(at_once);
          if (!take.is_over() && i % 2 == 0) take.cancel();
          while (!take.is_over()) {
            if (takers.load() < kTakers) take.cancel();
            std::this_thread::yield();
          }
          if (take.status().ok())
            taken[size_t(t)].push_back(take.output().scalar_value<int>());
        }
        takers.fetch_sub(1);
      });
    for (std::thread& thread : threads) thread.join();
    std::vector<int> rest;
    while (queue.size() > 0) rest.push_back(queue.take_int());
    taken.push_back(rest);

    std::vector<int> seen(kPutters * kEach);
    std::vector<int> most(kPutters, -1);
    for (const std::vector<int>& one_taker : taken) {
      std::vector<int> last(kPutters, -1);
      for (const int value : one_taker) {
        const size_t putter = size_t(value / kEach);
        ++seen[size_t(value)];
        REQUIRE(value > last[putter]);
        last[putter] = value;
        most[putter] = std::max(most[putter], value);
      }
    }
    for (int p = 0; p < kPutters; ++p)
      for (int i = p * kEach; i <= most[size_t(p)]; ++i)
        REQUIRE(seen[size_t(i)] == 1);
    // What was reserved for a dequeue did not count against the capacity; its
    // cancellation put that back.
    CHECK(rest.size() <= 64 + 1);
  }
}

TEST_CASE("a queue's waits are cancelled in any order, even very many") {
  constexpr int kWaits = 100'000;
  TestedQueue queue = ints();
  std::deque<Call> calls;
  for (int i = 0; i < kWaits; ++i)
    calls.emplace_back(queue.take, std::vector<Tensor>{queue.handle}).start();
  for (size_t i = 0; i < kWaits; i += 2) calls[i].cancel();
  for (int i = 0; i < kWaits / 4; ++i) CHECK(queue.must_put({one(i)}).ok());
  for (size_t i = kWaits; i-- > 0;)
    if (!calls[i].is_over()) calls[i].cancel();
  int next = 0;
  for (const Call& call : calls) {
    REQUIRE(call.answers() == 1);
    if (call.status().ok())
      REQUIRE(call.output().scalar_value<int>() == next++);
  }
  CHECK(next == kWaits / 4);
  CHECK(queue.size() == 0);
  CHECK(queue.describe_state() == "queue \"q\" has 0 elements");
}
