// Queues in every configuration of the engine: runs that wait for one another,
// and how they end.
#include <doctest/doctest.h>

#include <deque>
#include <thread>

#include "graph/builder/builder.h"
#include "tests/actors/pending.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::contains;
using graph::testing::must;

namespace {

using Types = std::vector<DataType>;

Output queue(const Scope& s, int capacity,
             std::string_view op = "FIFOQueueV2") {
  return s.op(op, {},
              {{"component_types", Types{DataType::kInt32}},
               {"shapes", std::vector<PartialShape>{PartialShape::scalar()}},
               {"capacity", capacity},
               {"shared_name", "q"}});
}

Output dequeue(const Scope& s, const Output& from) {
  return s.op("QueueDequeueV2", {from},
              {{"component_types", Types{DataType::kInt32}}});
}

// A queue "q" of ints with "put" (of "x"), "take", "take_many" (of "n"),
// "close" and "size".
Graph queue_graph(int capacity = -1) {
  Graph graph;
  const Scope s(graph);
  const Output q = queue(s.named("q"), capacity);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32);
  s.named("put").op("QueueEnqueueV2", {q, x});
  dequeue(s.named("take"), q);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32);
  s.named("take_many")
      .op("QueueDequeueManyV2", {q, n},
          {{"component_types", Types{DataType::kInt32}}});
  s.named("close").op("QueueCloseV2", {q});
  s.named("size").op("QueueSizeV2", {q});
  REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
  return graph;
}

void put(Session& session, int value) {
  must(session.run({{"x", Tensor::scalar(value)}}, {}, {"put"},
                   within_a_minute()));
}

int size_of(Session& session) {
  return must_run(session, {}, {"size"})[0].scalar_value<int32_t>();
}

void until_waiting(Session& session, int64_t count) {
  REQUIRE(comes_true([&] { return session.counters().waiting == count; }));
}

}  // namespace

TEST_CASE("smoke: a run waits for what another one puts in") {
  const Graph graph = queue_graph();
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    Pending take(*session, "take");
    until_waiting(*session, 1);
    put(*session, 7);
    CHECK(must(take.get())[0].scalar_value<int32_t>() == 7);
    put(*session, 8);
    CHECK(must_run(*session, {}, {"take"})[0].scalar_value<int32_t>() == 8);
  }
}

TEST_CASE("a thousand dequeues wait on one worker, and all end") {
  constexpr int kWaits = 1000;
  auto session = make_session({.workers = 1}, queue_graph());
  std::deque<Pending> takes;
  for (int i = 0; i < kWaits; ++i) takes.emplace_back(*session, "take");
  until_waiting(*session, kWaits);
  for (int i = 0; i < kWaits; ++i) put(*session, i);
  std::vector<int> seen(kWaits);
  for (Pending& take : takes)
    ++seen[size_t(must(take.get())[0].scalar_value<int32_t>())];
  CHECK(seen == std::vector<int>(kWaits, 1));
}

TEST_CASE("smoke: a reset of the container ends what waits") {
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    auto session = make_session(options, queue_graph());
    std::deque<Pending> takes;
    for (int i = 0; i < 100; ++i) takes.emplace_back(*session, "take");
    until_waiting(*session, 100);
    must(session->reset({""}));
    for (Pending& take : takes) {
      const Status status = take.get().status();
      CHECK(status.code() == Code::kCancelled);
      CHECK(contains(status.message(),
                     "queue \"q\" is gone: its container was reset"));
    }
    // The next one finds a queue of its own.
    put(*session, 1);
    CHECK(size_of(*session) == 1);
  }
}

TEST_CASE("smoke: a time-out names the queue, how full it is and who waits") {
  auto session = make_session({}, queue_graph(10));
  Pending other(*session, "take");
  until_waiting(*session, 1);
  RunOptions run;
  run.timeout = std::chrono::milliseconds(50);
  const auto begin = std::chrono::steady_clock::now();
  const Status status = session->run({}, {"take"}, {}, run).status();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK(status.code() == Code::kDeadlineExceeded);
  CAPTURE(status.to_string());
  CHECK(contains(status.message(),
                 "QueueDequeueV2 \"take\" in the root frame has not answered: "
                 "queue \"q\" has 0 of 10 elements, 2 dequeues wait"));
  CHECK_FALSE(other.answered());
  put(*session, 3);
  CHECK(other.get().ok());
}

TEST_CASE("runs that wait for a queue only are stalled, and say so") {
  auto session = make_session({}, queue_graph(10));
  Pending take(*session, "take");
  std::optional<std::string> why;
  REQUIRE(comes_true([&] { return (why = session->stalled()).has_value(); }));
  CAPTURE(*why);
  CHECK(contains(*why,
                 "waits for QueueDequeueV2 \"take\" (queue \"q\" has 0 of 10 "
                 "elements, 1 dequeue waits)"));
  take.token.cancel();
  CHECK(take.get().status().code() == Code::kCancelled);
}

TEST_CASE("a step's time-out ends all its dequeues") {
  constexpr int kWaits = 1000;
  Graph graph;
  const Scope s(graph);
  const Output q = queue(s.named("q"), -1);
  Inputs taken;
  for (int i = 0; i < kWaits; ++i) taken.add(dequeue(s, q));
  ops::add_n(s.named("sum"), taken);
  REQUIRE(s.status().ok());
  for (const int workers : {1, 2}) {
    auto session = make_session({.workers = workers}, graph);
    RunOptions run;
    run.timeout = std::chrono::milliseconds(200);
    CHECK(session->run({}, {"sum"}, {}, run).status().code() ==
          Code::kDeadlineExceeded);
  }
}

TEST_CASE("a queue that is closed ends waits, and gives what it has") {
  auto session = make_session({}, queue_graph());
  Pending many(*session, {{"n", Tensor::scalar(3)}}, {"take_many"}, {});
  until_waiting(*session, 1);
  put(*session, 1);
  must(session->run({}, {}, {"close"}, within_a_minute()));
  const Status status = many.get().status();
  CHECK(status.code() == Code::kOutOfRange);
  CHECK(contains(status.message(), "(requested 3, current size 1)"));
  CHECK(size_of(*session) == 1);
  CHECK(session->run({{"x", Tensor::scalar(1)}}, {}, {"put"}).status().code() ==
        Code::kCancelled);
}

TEST_CASE("a cancelled run takes no element of a queue") {
  constexpr int kRuns = 2000;
  auto session = make_session({.workers = 2}, queue_graph());
  std::deque<Pending> takes;
  for (int i = 0; i < kRuns; ++i) takes.emplace_back(*session, "take");
  until_waiting(*session, kRuns);
  for (size_t i = 0; i < kRuns; i += 2) takes[i].token.cancel();
  for (int i = 0; i < kRuns / 2; ++i) put(*session, i);
  std::vector<int> seen(kRuns / 2);
  for (size_t i = 0; i < kRuns; ++i) {
    const Answer answer = takes[i].get();
    REQUIRE(answer.ok() == (i % 2 == 1));
    if (answer.ok()) ++seen[size_t((*answer)[0].scalar_value<int32_t>())];
  }
  CHECK(seen == std::vector<int>(kRuns / 2, 1));
  CHECK(size_of(*session) == 0);
}

TEST_CASE("smoke: a loop puts in and takes out, in every iteration") {
  Graph graph;
  const Scope s(graph);
  const Output q = queue(s.named("q"), 2);
  const Output limit = ops::placeholder(s.named("n"), DataType::kInt32);
  const Outputs loop = while_loop(
      s,
      [&](const Scope& b, const Outputs& v) {
        return ops::less(b, v[0], limit);
      },
      [&](const Scope& b, const Outputs& v) -> Outputs {
        const Outputs enqueue(b.op("QueueEnqueueV2", {q, v[0]}));
        const Output taken = dequeue(b.with_control_dependencies(enqueue), q);
        return {ops::add(b, v[0], 1), ops::add(b, v[1], taken)};
      },
      {0, 0}, {.parallel_iterations = 1});
  ops::identity(s.named("sum"), loop[1]);
  REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    CHECK(must_run(*session, {{"n", Tensor::scalar(1000)}}, {"sum"})[0]
              .scalar_value<int32_t>() == 499'500);
  }
}

TEST_CASE("two sessions share a queue") {
  const Graph graph = queue_graph(1);
  auto first = make_session({}, graph);
  SessionOptions options;
  options.state = first->shared_state();
  auto second = make_session(options, graph);
  Pending take(*second, "take");
  until_waiting(*second, 1);
  put(*first, 5);
  CHECK(must(take.get())[0].scalar_value<int32_t>() == 5);
  CHECK(size_of(*second) == 0);
}

TEST_CASE("a reference to a queue is its handle, and a handle may be one") {
  Graph graph;
  const Scope s(graph);
  const Output q = queue(s.named("q"), -1, "FIFOQueue");
  s.named("put").op("QueueEnqueue", {q, s.constant(Tensor::scalar(4))});
  s.named("take").op("QueueDequeue", {q},
                     {{"component_types", Types{DataType::kInt32}}});
  const Output fake =
      s.named("fake").op("FakeQueue", {queue(s.named("same"), -1)});
  s.named("size").op("QueueSize", {fake});
  REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
  auto session = make_session({}, graph);
  must(session->run({}, {}, {"put"}, within_a_minute()));
  CHECK(size_of(*session) == 1);
  CHECK(must_run(*session, {}, {"take"})[0].scalar_value<int32_t>() == 4);
}
