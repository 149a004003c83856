// Workers that are killed or stopped in every phase of a step: the step fails
// with Unavailable naming the worker, and the others go on.
// TAGFLOW_KILLS="COUNT SEED" runs so many random kills, from that seed.
#include <doctest/doctest.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <sstream>
#include <thread>

#include "net/worker/worker.h"
#include "tests/actors/process_cases.h"
#include "tests/net/master/worker_process.h"
#include "tests/repeats.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;
using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr char kTask[] = "/job:worker/task:";

Scope on_task(const Scope& scope, uint32_t task) {
  return scope.with_device(kTask + std::to_string(task));
}

// What can be run on three workers; `out` is on task 0.
struct Work : actors::Program {
  std::string name;
  std::string out;
  std::vector<actors::Feed> feeds;
  bool ends = true;  // if nobody is killed

  std::unique_ptr<actors::Session> session(
      const WorkerProcesses& processes) const {
    must(s.status());
    actors::SessionOptions options;
    options.backend = processes.cluster;
    options.passes = PassSet::none();
    return actors::make_session(options, graph);
  }
};

// A loop of task 0 whose body is on all three.
std::unique_ptr<Work> endless_loop() {
  auto work = std::make_unique<Work>();
  work->name = "a loop";
  work->ends = false;
  const Scope s = on_task(work->s, 0);
  const Outputs last = while_loop(
      s.named("loop"),
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], std::numeric_limits<int32_t>::max());
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Output one = ops::add(on_task(in, 1), v[1], 1.f);
        const Output two = ops::add(on_task(in, 2), one, 1.f);
        return {ops::add(on_task(in, 0), v[0], 1),
                ops::identity(on_task(in, 0), two)};
      },
      {ops::constant(s, 0), ops::constant(s, 1.f)});
  work->out = last[1].name();
  return work;
}

// Task 0 waits in a Recv for what a queue of task 1 has, which nobody fills;
// task 2 waits for task 0.
std::unique_ptr<Work> empty_queue() {
  auto work = std::make_unique<Work>();
  work->name = "a blocked dequeue";
  work->ends = false;
  const Scope there = on_task(work->s, 1);
  const ops::Queue queue =
      ops::fifo_queue(there.named("q"), {DataType::kInt32},
                      {.shapes = {PartialShape::scalar()}});
  const Output taken = ops::neg(on_task(work->s, 0),
                                ops::dequeue(there.named("take"), queue)[0]);
  const Output two = ops::neg(on_task(work->s, 2), taken);
  work->out = ops::identity(on_task(work->s, 0).named("taken"), two).name();
  return work;
}

// A feed and a fetch of 16 MiB, which go through all workers.
std::unique_ptr<Work> large_tensors() {
  auto work = std::make_unique<Work>();
  work->name = "a fetch";
  Output x = ops::placeholder(on_task(work->s, 0).named("x"), DataType::kFloat,
                              PartialShape());
  for (const uint32_t task : {0, 1, 2})
    x = ops::add(on_task(work->s, task), x,
                 ops::constant(on_task(work->s, task), 1.f));
  work->out = ops::identity(on_task(work->s, 0).named("y"), x).name();
  work->feeds = {{"x", Tensor::make(DataType::kFloat, {4 << 20})}};
  for (float& value : work->feeds[0].second.mutable_flat<float>()) value = 1.f;
  return work;
}

// Nothing but a token from worker to worker.
std::unique_ptr<Work> short_step(const std::vector<uint32_t>& tasks) {
  auto work = std::make_unique<Work>();
  work->name = "a short step";
  Output x = ops::constant(on_task(work->s, tasks[0]), 1);
  for (const uint32_t task : tasks)
    x = ops::add(on_task(work->s, task), x,
                 ops::constant(on_task(work->s, task), 1));
  work->out = ops::identity(on_task(work->s, tasks[0]).named("y"), x).name();
  return work;
}

actors::RunOptions patient() { return actors::within_a_minute(); }

Status run(actors::Session& session, const Work& work) {
  return session.run(work.feeds, {work.out}, {}, patient()).status();
}

// The others go on, with what is compiled for them now.
void check_survivors(const WorkerProcesses& processes, uint32_t victim) {
  std::vector<uint32_t> tasks;
  for (const uint32_t task : {0u, 1u, 2u})
    if (task != victim) tasks.push_back(task);
  const auto work = short_step(tasks);
  const Status status = run(*work->session(processes), *work);
  INFO("the survivors of ", victim, ": ", status.to_string());
  CHECK(status.ok());
}

// What follows the worker is used by what is compiled from then on. A worker
// that was stopped first has to find that its links are closed.
void check_return(const WorkerProcesses& processes) {
  Status status;
  for (int tries = 0; tries < 1000; ++tries) {
    const auto work = short_step({0, 1, 2});
    status = run(*work->session(processes), *work);
    if (status.ok()) return;
    std::this_thread::sleep_for(milliseconds(10));
  }
  INFO(status.to_string());
  CHECK(false);
}

void check_lost(const Status& status, uint32_t victim) {
  INFO(status.to_string());
  CHECK(status.code() == Code::kUnavailable);
  CHECK(contains(status.message(), kTask + std::to_string(victim)));
}

// Runs the work, and calls `harm` after a while. Returns the answer, and how
// long after the harm it came.
std::pair<Status, double> harmed(actors::Session& session, const Work& work,
                                 Clock::duration delay,
                                 const std::function<void()>& harm) {
  Status status;
  Clock::time_point end;
  std::thread runner([&] {
    status = run(session, work);
    end = Clock::now();
  });
  std::this_thread::sleep_for(delay);
  const Clock::time_point begin = Clock::now();
  harm();
  runner.join();
  return {status,
          std::chrono::duration<double, std::milli>(end - begin).count()};
}

// Three workers, and a session that has run a short step over them.
struct ShortStep {
  ShortStep() { must(session->run({}, {work->out}, {}, patient())); }

  WorkerProcesses processes{3};
  const std::unique_ptr<Work> work = short_step({0, 1, 2});
  std::unique_ptr<actors::Session> session = work->session(processes);
};

}  // namespace

TEST_CASE("a worker for other test cases" * doctest::skip()) {
  const char* const told = std::getenv(kWorkerVariable);
  if (told == nullptr) return;
  REQUIRE(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  int descriptor = -1;
  WorkerOptions options;
  options.task.job = "worker";
  std::istringstream(told) >> options.task.index >> options.port >> descriptor;
  options.cluster = "processes";
  options.secret = kProcessSecret;
  options.devices = "cpu:1";
  options.workers = 1;
  options.on_warning = [](const std::string&) {};
  const auto worker = Worker::start(options);
  INFO(worker.status().to_string());
  REQUIRE(worker.ok());
  const uint16_t port = (*worker)->port();
  REQUIRE(::write(descriptor, &port, sizeof(port)) == ssize_t(sizeof(port)));
  ::close(descriptor);
  for (;;) ::pause();
}

TEST_CASE("a worker that is killed before a step fails it at once") {
  const ShortStep step;
  step.processes.workers[1]->kill();
  check_lost(run(*step.session, *step.work), 1);
  check_lost(run(*step.session, *step.work), 1);
  // Nor does it register anything.
  const auto other = short_step({1, 0});
  check_lost(run(*other->session(step.processes), *other), 1);
  check_survivors(step.processes, 1);
}

TEST_CASE("a worker that is killed in any phase of a step is named") {
  for (const auto& make : {endless_loop, empty_queue, large_tensors})
    for (const uint32_t victim : {0, 1, 2}) {
      WorkerProcesses processes(3);
      const auto work = make();
      CAPTURE(work->name);
      CAPTURE(victim);
      const auto session = work->session(processes);
      const auto [status, took] =
          harmed(*session, *work, milliseconds(work->ends ? 15 : 100),
                 [&] { processes.workers[victim]->kill(); });
      if (!work->ends || !status.ok()) check_lost(status, victim);
      MESSAGE(work->name << ", task " << victim
                         << " is killed: the answer comes after " << took
                         << " ms");
      check_survivors(processes, victim);
    }
}

TEST_CASE("a session whose worker was killed releases what it had") {
  ShortStep step;
  step.processes.workers[2]->kill();
  step.session.reset();
  check_survivors(step.processes, 2);
}

TEST_CASE("a process that follows a killed worker is used by new steps") {
  ShortStep step;
  step.processes.workers[1]->kill();
  check_lost(run(*step.session, *step.work), 1);
  step.processes.restart(1);
  check_return(step.processes);
  const Status again = run(*step.session, *step.work);
  CHECK_MESSAGE(again.ok(), again.to_string());
}

TEST_CASE("a worker that is stopped is named, and commits nothing afterwards") {
  WorkerProcesses processes(3);
  actors::Program p;
  const Scope there = on_task(p.s, 1);
  const ops::Variable v =
      ops::variable(there.named("v"), DataType::kInt32, PartialShape({}));
  ops::assign(there.named("init"), v, ops::constant(there, 0));
  ops::identity(on_task(p.s, 0).named("read"), ops::read(there, v));
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = processes.cluster;
  const auto variables = actors::make_session(options, p.graph);
  must(variables->run({}, {}, {"init"}, patient()));

  const auto work = endless_loop();
  const auto session = work->session(processes);
  const auto [status, took] = harmed(*session, *work, milliseconds(100), [&] {
    processes.workers[1]->signal(SIGSTOP);
  });
  check_lost(status, 1);
  MESSAGE("task 1 is stopped: the answer comes after " << took << " ms");
  check_survivors(processes, 1);
  processes.workers[1]->signal(SIGCONT);
  check_return(processes);
  // Its state has gone with the incarnation.
  const auto again = actors::make_session(options, p.graph);
  CHECK_FALSE(again->run({}, {"read"}, {}, patient()).ok());
}

TEST_CASE("random kills fail only the steps of those that are killed") {
  int count = tagflow::testing::repeats(6);
  uint64_t seed = 1;
  if (const char* text = std::getenv("TAGFLOW_KILLS"))
    std::istringstream(text) >> count >> seed;
  std::mt19937_64 random(seed);
  WorkerProcesses processes(3);
  double longest = 0;
  for (int i = 0; i < count; ++i) {
    const auto work = [&] {
      switch (random() % 4) {
        case 0:
          return endless_loop();
        case 1:
          return empty_queue();
        case 2:
          return large_tensors();
        default:
          return short_step({0, 1, 2});
      }
    }();
    const auto victim = uint32_t(random() % 3);
    const microseconds delay(random() % 60'000);
    const bool is_stopped = random() % 8 == 0;
    CAPTURE(seed);
    CAPTURE(i);
    CAPTURE(work->name);
    CAPTURE(victim);
    const auto session = work->session(processes);
    // A delay that is short hits the registration.
    const auto [status, took] = harmed(*session, *work, delay, [&] {
      if (is_stopped) {
        processes.workers[victim]->signal(SIGSTOP);
      } else {
        processes.workers[victim]->kill();
      }
    });
    if (!work->ends || !status.ok()) check_lost(status, victim);
    if (!is_stopped) longest = std::max(longest, took);
    check_survivors(processes, victim);
    // One that was stopped wakes up, or is killed, too.
    if (is_stopped && random() % 2 == 0) {
      processes.workers[victim]->signal(SIGCONT);
    } else {
      processes.restart(victim);
    }
    check_return(processes);
  }
  MESSAGE(count << " kills: the last answer came after " << longest << " ms");
}

}  // namespace tagflow::net
