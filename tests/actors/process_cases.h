// What one step over several processes must do, whatever network they have.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/session/backend.h"
#include "tests/actors/engine_check.h"
#include "tests/actors/program.h"

namespace tagflow::actors::processes {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::message_of;
using graph::testing::must;

// Makes the processes of job "worker", one task each: so many, with these
// devices and threads each.
using Make = std::function<std::shared_ptr<Backend>(
    int count, const std::string& devices, int workers, uint64_t seed)>;

// Counts the processes that have partitions.
class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(std::shared_ptr<Backend> backend)
      : backend_(std::move(backend)) {}

  std::span<const graph::DeviceInfo> devices() const override {
    return backend_->devices();
  }
  const graph::KernelCatalog& kernels() const override {
    return backend_->kernels();
  }
  Result<Made> make(std::vector<graph::Partition> partitions,
                    std::vector<std::string> fetches,
                    const SessionOptions& options,
                    graph::Budget* budget) override {
    std::set<int> tasks;
    for (const graph::Partition& partition : partitions)
      tasks.insert(devices()[partition.device].name.task.value());
    parts_ = int(tasks.size());
    return backend_->make(std::move(partitions), std::move(fetches), options,
                          budget);
  }
  Status reset(const std::vector<std::string>& containers) override {
    return backend_->reset(containers);
  }
  bool has_local_files() const override { return backend_->has_local_files(); }
  // How many parts the last signature has that was made.
  int parts() const { return parts_; }

 private:
  const std::shared_ptr<Backend> backend_;
  std::atomic<int> parts_{0};
};

// The expected fetches that come: over processes, what never comes is waited
// for until the time-out.
inline Status check(const reference::Case& c,
                    const reference::Interpretation& expected,
                    const SessionOptions& options) {
  reference::Case coming{c.graph.clone(), c.feeds, {}};
  reference::Interpretation outcomes;
  for (size_t i = 0; i < c.fetches.size(); ++i) {
    if (expected.fetches[i].state == reference::State::kAbsent) continue;
    coming.fetches.push_back(c.fetches[i]);
    outcomes.fetches.push_back(expected.fetches[i]);
  }
  return check_engine(coming, outcomes, options);
}

// Random graphs agree with the reference.
inline void check_random_graphs(const Make& make) {
  for (const int count : {2, 3}) {
    const auto processes = std::make_shared<CountingBackend>(make(
        count, count == 2 ? "cpu:2" : "cpu:1,stream:1", 2, uint64_t(count)));
    int cut = 0;
    for (uint64_t seed = 900'000; seed < 900'060; ++seed) {
      const auto c = reference::random_graph(seed);
      REQUIRE(c.ok());
      const auto expected =
          reference::interpret(c->graph, c->feeds, c->fetches);
      REQUIRE(expected.ok());
      if (expected->is_ambiguous) continue;
      SessionOptions options = configuration(seed * 7);
      options.backend = processes;
      options.scatter = seed;
      INFO(count, " processes, seed ", seed, ", ", describe(options));
      const Status status = check(*c, *expected, options);
      INFO(status.to_string());
      CHECK(status.ok());
      cut += processes->parts() > 1 ? 1 : 0;
    }
    CHECK(cut > 20);
  }
}

// A loop of 1,000 trips on task 0, whose body on task 1 fails in trip "bad".
struct CutLoop : actors::Program {
  CutLoop() {
    const Output bad = input("bad", DataType::kInt32);
    const Outputs last = while_loop(
        s.named("loop"),
        [](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 1000);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Scope there = in.with_device("/job:worker/task:1");
          const Output check = ops::assert_(
              there, ops::not_equal(there, v[0], bad), {"a bad trip"});
          const Output next =
              ops::add(there.with_control_dependencies({check}), v[0], 1);
          return {ops::identity(in.with_device("/job:worker/task:0"), next)};
        },
        {ops::constant(s, 0)});
    out = last[0];
    must(s.status());
  }
  Result<int32_t> run(Session& session, int bad) const {
    TAGFLOW_ASSIGN(const auto results,
                   session.run({{"bad", Tensor::scalar(bad)}}, {out.name()}, {},
                               within_a_minute()));
    return results[0].item<int32_t>();
  }

  Output out;
};

// An error in one process ends the parts of all, which run again.
inline void check_errors(const Make& make) {
  const CutLoop p;
  const auto processes =
      std::make_shared<CountingBackend>(make(2, "cpu:1", 1, 7));
  SessionOptions options;
  options.backend = processes;
  const auto session = make_session(options, p.graph);
  for (const int bad : {500, -1, 0, -1}) {
    CAPTURE(bad);
    const Result<int32_t> answer = p.run(*session, bad);
    INFO(answer.status().to_string());
    CHECK(processes->parts() == 2);
    if (bad < 0) {
      CHECK(must(answer) == 1000);
    } else {
      CHECK(answer.status().code() == Code::kInvalidArgument);
      CHECK(contains(answer.status().message(), "a bad trip"));
    }
  }
}

// A variable of one process keeps its value from step to step.
inline void check_variables(const Make& make) {
  actors::Program p;
  const Scope there = p.s.with_device("/job:worker/task:1");
  const ops::Variable v =
      ops::variable(there.named("v"), DataType::kInt32, PartialShape({}));
  ops::assign(there.named("init"), v, 1);
  ops::assign_add(there.named("more"), v, p.input("x", DataType::kInt32));
  ops::identity(p.s.with_device("/job:worker/task:0").named("read"),
                ops::read(there, v));
  must(p.s.status());
  SessionOptions options;
  options.backend = make(2, "cpu:1", 1, 3);
  const auto session = make_session(options, p.graph);
  must(session->run({}, {}, {"init"}, within_a_minute()));
  for (int i = 0; i < 3; ++i)
    must(session->run({{"x", Tensor::scalar(10)}}, {}, {"more"},
                      within_a_minute()));
  CHECK(must(must_run(*session, {}, {"read"})[0].item<int32_t>()) == 31);
  must(session->reset({""}));
  CHECK_FALSE(session->run({}, {"read"}, {}, within_a_minute()).ok());
}

// "taken", on task 0, is what a queue of task 1 has; nobody fills it.
struct Waiting : actors::Program {
  Waiting() {
    const Scope there = s.with_device("/job:worker/task:1");
    const ops::Queue queue =
        ops::fifo_queue(there.named("q"), {DataType::kInt32},
                        {.shapes = {PartialShape::scalar()}});
    ops::identity(s.with_device("/job:worker/task:0").named("taken"),
                  ops::dequeue(there.named("take"), queue)[0]);
    must(s.status());
  }
};

// A wait in one process is named by the step, and can be cancelled.
inline void check_waits(const Make& make) {
  const Waiting p;
  SessionOptions options;
  options.backend = make(2, "cpu:1", 1, 3);
  const auto session = make_session(options, p.graph);
  RunOptions soon;
  soon.timeout = std::chrono::milliseconds(50);
  const std::string message = message_of(
      session->run({}, {"taken"}, {}, soon).status(), Code::kDeadlineExceeded);
  CHECK(contains(message, "time-out of 0.05 s"));
  must(session->close());
}

}  // namespace tagflow::actors::processes
