// Snapshots: of one moment between steps, and restored as they were taken.
#include "actors/checkpoint/snapshot.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>

#include "actors/shared_state.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_queue.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

constexpr int64_t kSize = 4096;

// "init", and "step", which adds one to all elements of three variables, one
// after another.
Graph training() {
  Graph graph;
  const Scope s(graph);
  Outputs inits, steps;
  const Output ones =
      ops::fill(s, Tensor::of<int64_t>({1}, {kSize}), Tensor::scalar(1.0f));
  Output last;
  for (const std::string name : {"w", "m", "v"}) {
    const ops::Variable variable =
        ops::variable(s.named(name), DataType::kFloat, PartialShape({kSize}));
    inits.push_back(ops::assign(s, variable, ops::zeros_like(s, ones)));
    const Scope then = last.valid() ? s.with_control_dependencies({last}) : s;
    last = ops::assign_add(then, variable, ones);
    ops::read(s.named("read_" + name), variable);
  }
  const Output r = ops::reference_variable(s.named("r"), DataType::kInt64,
                                           PartialShape::scalar());
  inits.push_back(ops::assign(s, r, Tensor::scalar<int64_t>(0)));
  const Output counted = ops::assign_add(s.with_control_dependencies({last}), r,
                                         Tensor::scalar<int64_t>(1));
  ops::group(s.named("init"), inits);
  ops::group(s.named("step"), {counted});
  // Waits for a queue after its update.
  ops::group(s.named("waiting"),
             {test_take(s.with_control_dependencies(
                 {ops::assign_add(s, r, Tensor::scalar<int64_t>(1))}))});
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

void run_target(Session& session, const std::string& target) {
  must(session.run({}, {}, {target}, within_a_minute()));
}

}  // namespace

TEST_CASE("a snapshot is of one moment, while several train") {
  for (const char* devices : {"", "cpu:2", "cpu:1,stream:1"}) {
    INFO(devices);
    SessionOptions options;
    options.devices = devices;
    options.workers = 2;
    if (*devices != '\0') options.scatter = 5;
    const auto session = make_session(options, training());
    run_target(*session, "init");
    const auto snapshots = must(Snapshots::create(*session));
    std::atomic<bool> ends{false};
    std::atomic<int> failures{0};
    std::vector<std::thread> trainers;
    for (int t = 0; t < 4; ++t)
      trainers.emplace_back([&] {
        while (!ends)
          if (!session->run({}, {}, {"step"}, within_a_minute()).ok())
            ++failures;
      });
    int64_t before = -1;
    for (int i = 0; i < 20; ++i) {
      const Snapshot snapshot = must(snapshots->take());
      REQUIRE(snapshot.variables.size() == 4);
      const auto count = snapshot.variables.at("r").scalar_value<int64_t>();
      CHECK(count >= before);
      before = count;
      for (const std::string name : {"w", "m", "v"})
        for (const float value : snapshot.variables.at(name).flat<float>())
          REQUIRE(value == float(count));
    }
    ends = true;
    for (std::thread& trainer : trainers) trainer.join();
    CHECK(failures == 0);
  }
}

TEST_CASE("a snapshot restores the values that it has taken") {
  const auto session = make_session({}, training());
  run_target(*session, "init");
  run_target(*session, "step");
  const auto snapshots = must(Snapshots::create(*session));
  const Snapshot snapshot = must(snapshots->take());
  run_target(*session, "step");
  REQUIRE(snapshots->restore(snapshot).ok());
  CHECK(must(must_run(*session, {}, {"r"})[0].item<int64_t>()) == 1);
  // A session that starts from nothing goes on from there.
  const auto other = make_session({}, training());
  std::vector<std::string> missing;
  REQUIRE(must(Snapshots::create(*other))->restore(snapshot, &missing).ok());
  CHECK(missing.empty());
  run_target(*other, "step");
  CHECK(must_run(*other, {}, {"read_w"})[0].flat<float>()[7] == 2.0f);
}

TEST_CASE("a snapshot of another graph is refused, with what differs") {
  const auto session = make_session({}, training());
  const auto snapshots = must(Snapshots::create(*session));
  CHECK(snapshots->names() == std::vector<std::string>{"m", "r", "v", "w"});
  Snapshot snapshot;
  snapshot.variables.emplace("w", Tensor::vector<float>({1, 2}));
  snapshot.variables.emplace("bias", Tensor::scalar(1.0f));
  snapshot.variables.emplace("r", Tensor::scalar(1.0f));
  const Status status = snapshots->restore(snapshot);
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message() ==
        "[snapshot] the snapshot does not fit the graph: \"bias\" (float[]) is "
        "not a variable of the graph, \"r\" is float[], but the graph has "
        "int64[], \"w\" is float[2], but the graph has float[4096]");
  std::vector<std::string> missing;
  REQUIRE(snapshots->restore({}, &missing).ok());
  CHECK(missing == snapshots->names());
}

TEST_CASE("a restore that fails leaves the seed and the counts of runs") {
  const auto session = make_session({}, training());
  run_target(*session, "init");
  const auto snapshots = must(Snapshots::create(*session));
  Snapshot snapshot = must(snapshots->take());
  snapshot.seed = 7;
  snapshot.run_counts = {{"x", 9}, {"a name too long to be inline", 8}};
  SharedState& state = *session->shared_state();
  // Once, so that the signature is there.
  must(snapshots->restore(snapshot));
  state.set_seed(5);
  state.run_counts().restore({{"x", 3}});
  const auto is_as_before = [&] {
    return state.seed() == 5 && state.run_counts().all().size() == 1 &&
           state.run_counts().all().at("x") == 3;
  };
  Snapshot other = snapshot;
  other.variables.insert_or_assign("w", Tensor::vector<float>({1, 2}));
  CHECK(snapshots->restore(other).code() == Code::kInvalidArgument);
  CHECK(is_as_before());
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    FailAllocation fail(k);
    const Status status = snapshots->restore(snapshot);
    fail.stop();
    CHECK(is_as_before() == !status.ok());
    if (!fail.failed()) break;
    state.set_seed(5);
    state.run_counts().restore({{"x", 3}});
  }
  CHECK(state.seed() == 7);
  CHECK(state.run_counts().all() == snapshot.run_counts);
}

TEST_CASE("a snapshot waits for a step that waits, but not without end") {
  const auto session = make_session({}, training());
  run_target(*session, "init");
  const auto snapshots = must(Snapshots::create(*session));
  std::thread waiting([&] { run_target(*session, "waiting"); });
  while (TestQueue::global().waiting() == 0) std::this_thread::yield();
  const Status status =
      snapshots->take(std::chrono::milliseconds(150)).status();
  CHECK(status.code() == Code::kDeadlineExceeded);
  CHECK(status.message().find("between steps") != std::string::npos);
  // Steps that came meanwhile were not kept for ever.
  run_target(*session, "step");
  TestQueue::global().put(1);
  waiting.join();
  CHECK(must(snapshots->take()).variables.at("r").scalar_value<int64_t>() == 2);
}

TEST_CASE("a run that waits for a snapshot ends, whatever ends it") {
  using Mode = devices::StateLock::Mode;
  auto session = make_session({}, training());
  run_target(*session, "init");
  const auto state = session->shared_state();
  REQUIRE(state->border().try_lock(Mode::kExclusive));
  (void)must(session->make_callable({}, {}, {"step"}));
  RunOptions options;
  options.timeout = std::chrono::milliseconds(20);
  Status status = session->run({}, {}, {"step"}, options).status();
  CHECK(status.code() == Code::kDeadlineExceeded);
  CHECK(status.message().find("it was still waiting for a snapshot of the "
                              "variables to be taken") != std::string::npos);
  // What updates nothing goes on.
  CHECK(must(must_run(*session, {}, {"r"})[0].item<int64_t>()) == 0);

  const auto started = [&](const RunOptions& run) {
    auto answer = std::make_shared<std::promise<Status>>();
    session->run_async({}, {}, {"step"}, run, [answer](auto result, auto&&) {
      answer->set_value(result.status());
    });
    return answer->get_future();
  };
  RunOptions with_token = within_a_minute();
  with_token.cancel.emplace();
  auto cancelled = started(with_token);
  with_token.cancel->cancel();
  CHECK(cancelled.get().code() == Code::kCancelled);
  auto granted = started(within_a_minute());
  state->border().unlock(Mode::kExclusive);
  CHECK(granted.get().ok());
  REQUIRE(state->border().try_lock(Mode::kExclusive));
  auto closed = started(within_a_minute());
  REQUIRE(session->close().ok());
  CHECK(closed.get().code() == Code::kCancelled);
  state->border().unlock(Mode::kExclusive);
}
