// Traces of runs over several processes.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "actors/watch/trace.h"
#include "net/link/silence.h"
#include "tests/net/master/works.h"
#include "tests/skip.h"

namespace tagflow::net {
namespace {

using namespace works;  // NOLINT: for tests
using actors::Trace;
using actors::TraceEvent;

// A loop of task 0, each of whose trips goes to task 1 and back.
std::unique_ptr<Work> trips(int count) {
  auto work = std::make_unique<Work>();
  work->name = "trips";
  const Scope s = on_task(work->s, 0);
  const Outputs last = while_loop(
      s.named("loop"),
      [count](const Scope& in, const Outputs& v) {
        return ops::less(on_task(in, 0), v[0], float(count));
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::identity(
            on_task(in, 0), ops::add(on_task(in, 1).named("away"), v[0], 1.f))};
      },
      {ops::constant(s, 0.f)}, {.parallel_iterations = 1});
  work->out = last[0].name();
  work->expected = Tensor::scalar(float(count));
  return work;
}

std::string device_of(uint32_t task) {
  return fmt::format("/job:worker/replica:0/task:{}/device:CPU:0", task);
}

// When nodes of this op fired at the task, by iteration.
std::map<int64_t, int64_t> firings(const Trace& trace, uint32_t task,
                                   std::string_view op) {
  std::map<int64_t, int64_t> times;
  for (const auto& track : trace.tracks())
    for (const TraceEvent& event : track)
      if (event.kind == TraceEvent::kNode && event.device == device_of(task) &&
          event.node->op == op)
        times[event.tag.iteration] = event.begin;
  return times;
}

Status record(actors::Session& session, const Work& work, Trace& trace) {
  actors::RunOptions run = patient();
  run.trace = &trace;
  return check_result(work, session.run(work.feeds, {work.out}, {}, run));
}

bool can_shift_clocks() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(WorkerProcess::shift_clock(10) ? 0 : 1);
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

TEST_CASE("a trace of a run over workers has what fired at each of them") {
  const WorkerProcesses processes(2);
  const auto work = trips(5);
  const auto session = work->session(processes);
  Trace trace;
  must(record(*session, *work, trace));
  CHECK(firings(trace, 0, "Less").size() == 6);
  CHECK(firings(trace, 1, "AddV2").size() == 5);
  CHECK(firings(trace, 0, "AddV2").empty());
  CHECK(trace.dropped() == 0);
  for (const auto& track : trace.tracks())
    for (const TraceEvent& event : track) {
      CHECK(event.device == track.front().device);
      CHECK(event.begin <= event.end);
    }
  // A run without a trace adds nothing to it.
  const size_t room = trace.room();
  must(run(*session, *work));
  CHECK(trace.room() == room);
}

TEST_CASE("clocks of workers that are hours apart are one clock in a trace") {
  if (!can_shift_clocks())
    return skip_test_case("there is no time namespace for its workers");
  constexpr int kTrips = 2000;
  // A clock that has begun with its machine cannot be behind it.
  const auto up = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::steady_clock::now().time_since_epoch());
  for (const int ahead :
       {20'000, -int(std::min<int64_t>(up.count(), 20'000) / 2)}) {
    CAPTURE(ahead);
    const WorkerProcesses processes(2, nullptr, ahead);
    const auto work = trips(kTrips);
    const auto session = work->session(processes);
    must(run(*session, *work));
    Trace trace;
    must(record(*session, *work, trace));
    // A Ping takes less time than 1000 of the trips.
    const auto here = firings(trace, 0, "Less");
    const auto there = firings(trace, 1, "AddV2");
    REQUIRE(here.contains(kTrips / 2));
    REQUIRE(there.size() == kTrips);
    const int64_t middle = here.at(kTrips / 2);
    CHECK(there.at(0) < middle);
    CHECK(there.at(kTrips - 1) > middle);
  }
}

TEST_CASE("a trace of a run that has lost a worker has the parts of others") {
  const WorkerProcesses processes(3);
  const auto work = endless_loop();
  const auto session = work->session(processes);
  Trace trace;
  const auto [status, took] =
      harmed([&] { return record(*session, *work, trace); },
             std::chrono::milliseconds(200 * kSlowness),
             [&] { processes.workers[1]->kill(); });
  CHECK(status.code() == Code::kUnavailable);
  CHECK(firings(trace, 0, "Less").contains(1));
  CHECK(firings(trace, 2, "AddV2").contains(0));
  CHECK(firings(trace, 1, "AddV2").empty());
}

TEST_CASE(
    "a trace that is full says that later runs of workers are not in it") {
  const WorkerProcesses processes(2);
  const auto work = trips(1000);
  const auto session = work->session(processes);
  Trace trace(1);  // one block
  must(record(*session, *work, trace));
  CHECK(trace.room() == 0);
  const uint64_t dropped = trace.dropped();
  CHECK(dropped > 1000);
  must(record(*session, *work, trace));
  CHECK(trace.dropped() == dropped + 2);
}

}  // namespace tagflow::net
