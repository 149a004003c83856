// What runs on three workers while some are lost, and what must hold then.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/actors/process_cases.h"
#include "tests/net/master/worker_process.h"

namespace tagflow::net::works {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;
using Clock = std::chrono::steady_clock;

inline double in_ms(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

inline std::string name_of(uint32_t task) {
  return "/job:worker/task:" + std::to_string(task);
}
inline Scope on_task(const Scope& scope, uint32_t task) {
  return scope.with_device(name_of(task));
}

// What can be run on three workers; `out` is on task 0.
struct Work : actors::Program {
  std::string name;
  std::string out;
  std::vector<actors::Feed> feeds;
  std::optional<Tensor> expected;  // none: it ends only if somebody is lost

  bool ends() const { return expected.has_value(); }
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
inline std::unique_ptr<Work> endless_loop() {
  auto work = std::make_unique<Work>();
  work->name = "a loop";
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

// Tasks 0 and 2 wait in a Recv for what a queue of task 1 has, which nobody
// fills; task 2 waits for task 0, too.
inline std::unique_ptr<Work> empty_queue() {
  auto work = std::make_unique<Work>();
  work->name = "a blocked dequeue";
  const Scope there = on_task(work->s, 1);
  const ops::Queue queue =
      ops::fifo_queue(there.named("q"), {DataType::kInt32},
                      {.shapes = {PartialShape::scalar()}});
  const Output taken = ops::dequeue(there.named("take"), queue)[0];
  const Output zero = ops::neg(on_task(work->s, 0), taken);
  const Output two = ops::add(on_task(work->s, 2), taken, zero);
  work->out = ops::identity(on_task(work->s, 0).named("taken"), two).name();
  return work;
}

// A feed and a fetch of 16 MiB, which go through all workers.
inline std::unique_ptr<Work> large_tensors() {
  auto work = std::make_unique<Work>();
  work->name = "a fetch";
  Output x = ops::placeholder(on_task(work->s, 0).named("x"), DataType::kFloat,
                              PartialShape());
  for (const uint32_t task : {0, 1, 2})
    x = ops::add(on_task(work->s, task), x,
                 ops::constant(on_task(work->s, task), 1.f));
  work->out = ops::identity(on_task(work->s, 0).named("y"), x).name();
  Tensor fed = Tensor::make(DataType::kFloat, {4 << 20});
  Tensor expected = Tensor::make(DataType::kFloat, {4 << 20});
  float* const values = fed.mutable_data<float>();
  float* const sums = expected.mutable_data<float>();
  for (int64_t i = 0; i < fed.num_elements(); ++i) {
    values[i] = 0.37f * float(i);
    sums[i] = values[i] + 1.f + 1.f + 1.f;
  }
  work->feeds = {{"x", std::move(fed)}};
  work->expected = std::move(expected);
  return work;
}

// Nothing but a token from worker to worker.
inline std::unique_ptr<Work> short_step(const std::vector<uint32_t>& tasks) {
  auto work = std::make_unique<Work>();
  work->name = "a short step";
  Output x = ops::constant(on_task(work->s, tasks[0]), 1);
  for (const uint32_t task : tasks)
    x = ops::add(on_task(work->s, task), x,
                 ops::constant(on_task(work->s, task), 1));
  work->out = ops::identity(on_task(work->s, tasks[0]).named("y"), x).name();
  work->expected = Tensor::scalar(int32_t(1 + tasks.size()));
  return work;
}

inline actors::RunOptions patient() { return actors::within_a_minute(); }

// A result that is not the right one is an error, which no lost worker causes.
inline Status check_result(const Work& work,
                           const Result<std::vector<Tensor>>& result) {
  TAGFLOW_RETURN_IF_ERROR(result.status());
  if (work.ends() && identical((*result)[0], *work.expected)) return {};
  return error(Code::kInternal, "{} gives {}", work.name,
               (*result)[0].describe());
}

inline Status run(actors::Session& session, const Work& work) {
  return check_result(work, session.run(work.feeds, {work.out}, {}, patient()));
}

// The tasks go on, with what is compiled for them now.
inline void check_work(const WorkerProcesses& processes,
                       const std::vector<uint32_t>& tasks) {
  const auto work = short_step(tasks);
  const Status status = run(*work->session(processes), *work);
  INFO(tasks.size(), " tasks from ", tasks[0], ": ", status.to_string());
  CHECK(status.ok());
}

inline void check_survivors(const WorkerProcesses& processes, uint32_t victim) {
  std::vector<uint32_t> tasks;
  for (const uint32_t task : {0u, 1u, 2u})
    if (task != victim) tasks.push_back(task);
  check_work(processes, tasks);
}

// What follows the worker is used by what is compiled from then on. A worker
// that was stopped first has to find that its links are closed.
inline void check_return(const WorkerProcesses& processes) {
  Status status;
  for (int tries = 0; tries < 1000; ++tries) {
    const auto work = short_step({0, 1, 2});
    status = run(*work->session(processes), *work);
    if (status.ok()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  INFO(status.to_string());
  CHECK(false);
}

inline void check_lost(const Status& status, uint32_t victim) {
  INFO(status.to_string());
  CHECK(status.code() == Code::kUnavailable);
  CHECK(contains(status.message(), name_of(victim)));
}

// Does something, and calls `harm` after a while. Returns what came of it, and
// how many ms after the harm.
inline std::pair<Status, double> harmed(const std::function<Status()>& f,
                                        Clock::duration delay,
                                        const std::function<void()>& harm) {
  Status status;
  Clock::time_point end;
  std::thread runner([&] {
    status = f();
    end = Clock::now();
  });
  std::this_thread::sleep_for(delay);
  const Clock::time_point begin = Clock::now();
  harm();
  runner.join();
  return {status, in_ms(begin, end)};
}

}  // namespace tagflow::net::works
