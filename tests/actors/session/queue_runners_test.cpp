// Queue runners fill queues until their input ends, they are stopped, or their
// session ends. No thread stays behind.
#include "actors/session/queue_runners.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "graph/file/graphdef.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/program.h"
#include "tests/failing_new.h"
#include "tests/source_path.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::contains;
using graph::testing::message_of;
using graph::testing::must;

namespace {

constexpr std::chrono::seconds kMinute{60};

// Elements go from the queue "from", which is filled by hand, to "to".
struct Pipe : Program {
  explicit Pipe(int64_t capacity = 4, int threads = 1) {
    const ops::QueueArgs args{.shapes = {PartialShape::scalar()}};
    from = ops::fifo_queue(s.named("from"), {DataType::kInt32}, args);
    ops::QueueArgs bounded = args;
    bounded.capacity = capacity;
    to = ops::fifo_queue(s.named("to"), {DataType::kInt32}, bounded);
    const Output numbers =
        ops::placeholder(s.named("numbers"), DataType::kInt32, {-1});
    ops::enqueue_many(s.named("give"), from, {numbers});
    ops::close_queue(s.named("give_no_more"), from);
    ops::enqueue(s.named("move"), to, ops::dequeue(s, from));
    ops::close_queue(s.named("close"), to);
    ops::close_queue(s.named("cancel"), to, {true});
    ops::dequeue(s.named("take"), to);
    test_block(s.named("held"), ops::dequeue(s, to)[0]);
    ops::queue_size(s.named("size"), to);
    ops::queue_is_closed(s.named("is_closed"), to);
    runner.queue = "to";
    runner.enqueue_ops.assign(size_t(threads), "move");
    runner.close_op = "close";
    runner.cancel_op = "cancel";
    must(s.status());
    session = make_session({}, graph);
  }

  void give(int count) {
    std::vector<int32_t> numbers(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) numbers[size_t(i)] = next++;
    must(session->run(
        {{"numbers",
          Tensor::of<int32_t>({count}, std::span<const int32_t>(numbers))}},
        {}, {"give"}, within_a_minute()));
  }
  void target(const char* name) {
    must(session->run({}, {}, {name}, within_a_minute()));
  }
  Status start() {
    return start_queue_runners(*session, {&runner, 1}, threads);
  }
  Result<int32_t> take() {
    TAGFLOW_ASSIGN(const auto results,
                   session->run({}, {"take"}, {}, within_a_minute()));
    return results[0].item<int32_t>();
  }
  int32_t size() {
    return must(must_run(*session, {}, {"size"})[0].item<int32_t>());
  }
  bool is_closed() {
    return must(must_run(*session, {}, {"is_closed"})[0].item<bool>());
  }
  // Until the queue is as full, which it becomes.
  void until_size(int32_t wanted) {
    while (size() != wanted) std::this_thread::yield();
  }

  int32_t next = 0;
  ops::Queue from, to;
  QueueRunnerDef runner;
  std::unique_ptr<Session> session;
  Coordinator threads;  // ends before the session
};

}  // namespace

TEST_CASE("a runner moves all there is, and closes its queue at the end") {
  for (const int count : {0, 1, 100}) {
    for (const int threads : {1, 3}) {
      CAPTURE(count);
      CAPTURE(threads);
      Pipe p(4, threads);
      if (count > 0) p.give(count);
      p.target("give_no_more");
      must(p.start());
      std::vector<int32_t> taken;
      for (;;) {
        const Result<int32_t> one = p.take();
        if (!one.ok()) {
          CHECK(one.status().code() == Code::kOutOfRange);
          break;
        }
        taken.push_back(*one);
      }
      must(p.threads.join());
      CHECK_FALSE(p.threads.should_stop());
      if (threads > 1) std::ranges::sort(taken);
      REQUIRE(taken.size() == size_t(count));
      for (int i = 0; i < count; ++i) CHECK(taken[size_t(i)] == i);
    }
  }
}

TEST_CASE("the queue fills while a step that took from it computes") {
  Pipe p(3);
  p.give(10);
  Blockade blockade;
  std::promise<Result<std::vector<Tensor>>> answer;
  must(p.start());
  p.session->run_async({}, {"held"}, {}, within_a_minute(),
                       [&](Result<std::vector<Tensor>> result, RunStats) {
                         answer.set_value(std::move(result));
                       });
  blockade.until_begun(1);
  // The step is in the middle of its work, and the next three are there.
  p.until_size(3);
  blockade.let_go();
  const auto held = must(answer.get_future().get());
  CHECK(must(held[0].item<int32_t>()) == 0);
  CHECK(must(p.take()) == 1);
}

TEST_CASE("a stop ends a runner that waits for space, and closes the queue") {
  for (const int threads : {1, 4}) {
    Pipe p(2, threads);
    p.give(20);
    must(p.start());
    p.until_size(2);
    CHECK_FALSE(p.is_closed());
    p.threads.request_stop();
    must(p.threads.join(kMinute));
    CHECK(p.is_closed());
    // What is there can be taken, and then there is an end.
    CHECK(p.take().ok());
    CHECK(p.take().ok());
    CHECK(p.take().status().code() == Code::kOutOfRange);
  }
}

TEST_CASE("a stop ends a runner that waits for elements") {
  Pipe p;
  p.give(1);
  must(p.start());
  p.until_size(1);
  p.threads.request_stop();
  must(p.threads.join(kMinute));
  CHECK(p.is_closed());
}

TEST_CASE("a stop with an error is what join returns") {
  Pipe p;
  must(p.start());
  p.threads.request_stop(error(Code::kDataLoss, "the reason"));
  CHECK(message_of(p.threads.join(kMinute), Code::kDataLoss) == "the reason");
}

TEST_CASE("the end of a session ends its runners, without an error") {
  for (int round = 0; round < 20; ++round) {
    Pipe p(2, 3);
    p.give(round);
    must(p.start());
    if (round % 2 == 1) p.until_size(std::min(round, 2));
    must(p.session->close());
    must(p.threads.join(kMinute));
    CHECK(p.threads.should_stop());
  }
}

TEST_CASE("an error of an enqueue operation names its runner") {
  Pipe p;
  const Output bad = ops::assert_(p.s.named("check"), false, {"not good"});
  ops::group(p.s.named("fails"), bad);
  p.runner.enqueue_ops = {"fails", "move"};
  const auto session = make_session({}, p.graph);
  Coordinator threads;
  must(start_queue_runners(*session, {&p.runner, 1}, threads));
  const std::string message =
      message_of(threads.join(kMinute), Code::kInvalidArgument);
  CHECK(message.starts_with("[queue_runner] queue runner 0 of \"to\": "));
  CHECK(contains(message, "not good"));
  CHECK(must(must_run(*session, {}, {"is_closed"})[0].item<bool>()));
}

TEST_CASE("a runner says which errors mean the end of its queue") {
  Pipe p;
  ops::assert_(p.s.named("fails"), false, {"the end"});
  must(p.s.status());
  p.runner.enqueue_ops = {"fails"};
  p.runner.closed_codes = {Code::kInvalidArgument};
  const auto session = make_session({}, p.graph);
  Coordinator threads;
  must(start_queue_runners(*session, {&p.runner, 1}, threads));
  must(threads.join());
  CHECK_FALSE(threads.should_stop());
  CHECK(must(must_run(*session, {}, {"is_closed"})[0].item<bool>()));
}

TEST_CASE("a queue runner of missing nodes starts nothing") {
  Pipe p;
  SUBCASE("an enqueue operation") { p.runner.enqueue_ops.push_back("mvoe"); }
  SUBCASE("a close operation") { p.runner.close_op = "mvoe"; }
  SUBCASE("a cancel operation") { p.runner.cancel_op = "mvoe"; }
  const std::string message = message_of(p.start(), Code::kNotFound);
  CHECK(message.starts_with("[queue_runner] \"to\": "));
  CHECK(contains(message, "\"mvoe\""));
  p.runner = {.queue = "to"};
  CHECK(message_of(p.start(), Code::kInvalidArgument) ==
        "[queue_runner] \"to\": there is no enqueue operation");
  CHECK_FALSE(p.threads.should_stop());
}

TEST_CASE("queue runners do not start once the coordinator has stopped") {
  Pipe p;
  p.threads.request_stop();
  CHECK(p.start().code() == Code::kFailedPrecondition);
  CHECK(p.is_closed());
}

TEST_CASE("queue runners whose start is stopped leave the reason to join") {
  Pipe p;
  // Its compilation, which is a part of the start, warns.
  ops::neg(p.s.with_device("/device:GPU:7").named("warns"), 3);
  must(p.s.status());
  p.runner.enqueue_ops = {"warns", "move"};
  SessionOptions options;
  options.soft_placement = true;
  options.passes = PassSet::none();
  Coordinator* stopped = nullptr;
  options.on_warning = [&](const std::string&) {
    if (stopped != nullptr)
      stopped->request_stop(error(Code::kDataLoss, "the reason"));
  };
  const auto session = make_session(options, p.graph);
  Coordinator threads;
  stopped = &threads;
  must(start_queue_runners(*session, {&p.runner, 1}, threads));
  CHECK(threads.should_stop());
  CHECK(message_of(threads.join(kMinute), Code::kDataLoss) == "the reason");
  CHECK(must(must_run(*session, {}, {"is_closed"})[0].item<bool>()));
}

TEST_CASE("queue runners without memory to start stop, and close their queue") {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    Pipe p(4, 3);
    FailAllocation fail(k);
    const Status status = p.start();
    fail.stop();
    if (!status.ok()) {
      CHECK(status.code() == Code::kResourceExhausted);
      CHECK((p.threads.should_stop() || !p.is_closed()));
    }
    // Threads that were not stopped end with their input.
    p.target("give_no_more");
    // A thread that runs already may be what has no memory.
    const Status ended = p.threads.join();
    if (!ended.ok()) CHECK(ended.code() == Code::kResourceExhausted);
    CHECK(p.is_closed() == (status.ok() || p.threads.should_stop()));
    if (!fail.failed()) break;
  }
}

TEST_CASE("the queue runners of a MetaGraph feed it to the end") {
  const GraphFile file =
      must(load_file(source_path("tests/actors/data/queue_runners.meta")));
  REQUIRE(file.queue_runners.size() == 2);
  const QueueRunnerDef& batch = file.queue_runners[1];
  CHECK(batch.queue == "batch/fifo_queue");
  CHECK(batch.enqueue_ops ==
        std::vector<std::string>{"batch/fifo_queue_enqueue"});
  CHECK(batch.close_op == "batch/fifo_queue_Close");
  CHECK(batch.cancel_op == "batch/fifo_queue_Close_1");
  CHECK(batch.closed_codes == std::vector<Code>{Code::kOutOfRange});
  const auto session = make_session({}, must(build_graph(file)));
  must(session->run({}, {}, {"start"}, within_a_minute()));
  Coordinator threads;
  must(start_queue_runners(*session, file.queue_runners, threads));
  std::vector<int32_t> all;
  for (;;) {
    const auto batch_of =
        session->run({}, {"numbers", "squares"}, {}, within_a_minute());
    if (!batch_of.ok()) {
      CHECK(batch_of.status().code() == Code::kOutOfRange);
      break;
    }
    const auto numbers = elements<int32_t>((*batch_of)[0]);
    const auto squares = elements<int32_t>((*batch_of)[1]);
    for (size_t i = 0; i < numbers.size(); ++i)
      CHECK(squares[i] == numbers[i] * numbers[i]);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  must(threads.join());
  REQUIRE(all.size() == 20);
  for (int i = 0; i < 20; ++i) CHECK(all[size_t(i)] == i % 10);
}
