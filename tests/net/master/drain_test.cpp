// Workers that leave while they have a master: no step fails by that.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "net/control/client.h"
#include "tests/actors/held_kernel.h"
#include "tests/actors/process_cases.h"
#include "tests/actors/test_op.h"
#include "tests/net/control/cluster_of.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;

constexpr std::chrono::minutes kLong{1};

using GateKernel = actors::HeldKernel<struct Drained>;

const bool kHasOp = (actors::add_test_op<GateKernel>("TestGate"), true);

// "held" waits for its gate at task 1 and ends at task 0; "both" needs both
// workers, and "first" the first one alone.
struct Held : actors::Program {
  Held() {
    GateKernel::has_begun = false;
    GateKernel::holds = true;
    const Scope here = s.with_device("/job:worker/task:0");
    const Scope there = s.with_device("/job:worker/task:1");
    // Large enough for the bulk link, which the end of a part does not await.
    const Output x = ops::fill(
        there, ops::constant(there, Tensor::of<int32_t>({1}, {1 << 18})),
        ops::constant(there, 3.f));
    const Output gated = there.op("TestGate", {x}, {})[0];
    ops::identity(here.named("held"), gated);
    ops::identity(there.named("there"), gated);
    ops::identity(here.named("both"),
                  ops::add(there, ops::constant(there, 1), 2));
    ops::add(here.named("first"), ops::constant(here, 1), 2);
    must(s.status());
  }
};

struct Workers {
  Workers() {
    ClusterOptions cluster = local_cluster();
    for (uint32_t task = 0; task < 2; ++task) {
      workers.push_back(start_worker(local_worker(task)));
      cluster.members.push_back({{"worker", task}, workers.back().address()});
    }
    options.backend = must(Cluster::connect(std::move(cluster)));
    options.passes = PassSet::none();
  }

  std::vector<Joined> workers;
  actors::SessionOptions options;
};

Status run(actors::Session& session, const char* fetch) {
  return session.run({}, {fetch}, {}, actors::within_a_minute()).status();
}

}  // namespace

TEST_CASE(
    "a worker that leaves ends the step that runs, and its master begins no "
    "other one") {
  const Held p;
  Workers workers;
  const auto session = actors::make_session(workers.options, p.graph);
  must(run(*session, "both"));
  std::promise<Result<std::vector<Tensor>>> answer;
  session->run_async(
      {}, {"held", "there"}, {}, actors::within_a_minute(),
      [&](Result<std::vector<Tensor>> result, const actors::RunStats&) {
        answer.set_value(std::move(result));
      });
  while (!GateKernel::has_begun)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Joined& leaving = workers.workers[1];
  auto drained = std::async(std::launch::async, [&] {
    const bool are_over = leaving.worker->drain(kLong);
    leaving.worker.reset();
    return are_over;
  });
  Status refused;
  while ((refused = run(*session, "both")).ok())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(refused.code() == Code::kUnavailable);
  CHECK(contains(refused.message(),
                 "[net] /job:worker/task:1 is leaving the cluster: it runs no "
                 "further step"));
  must(run(*session, "first"));
  GateKernel::holds = false;
  const auto fetched = must(answer.get_future().get());
  for (const Tensor& tensor : fetched)
    CHECK(tensor.flat<float>()[(1 << 18) - 1] == 3.f);
  CHECK(drained.get());
  const Status gone = run(*session, "both");
  CHECK(gone.code() == Code::kUnavailable);
  INFO(gone.to_string());
  CHECK(contains(gone.message(),
                 "[members] /job:worker/task:1 has left: [net|link] "
                 "/job:worker/task:1: the peer leaves: it was asked to, and "
                 "its steps are over"));
  must(run(*session, "first"));
}

TEST_CASE("a worker that leaves does not wait for its steps for ever") {
  const Held p;
  Workers workers;
  const auto session = actors::make_session(workers.options, p.graph);
  std::promise<Status> answer;
  session->run_async(
      {}, {"held"}, {}, actors::within_a_minute(),
      [&](const Result<std::vector<Tensor>>& result, const actors::RunStats&) {
        answer.set_value(result.status());
      });
  while (!GateKernel::has_begun)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Joined& leaving = workers.workers[1];
  CHECK_FALSE(leaving.worker->drain(std::chrono::milliseconds(1)));
  auto closed = std::async(std::launch::async, [&] { leaving.worker.reset(); });
  const Status lost = answer.get_future().get();
  GateKernel::holds = false;
  closed.get();
  CHECK(lost.code() == Code::kUnavailable);
  CHECK(contains(lost.message(), "the worker is closed"));
}

TEST_CASE("a worker without a master, and one without a step, leave at once") {
  Joined alone = start_worker(local_worker(0));
  CHECK(alone.worker->drain(kLong));
  Workers workers;
  CHECK(workers.workers[0].worker->drain(kLong));
}

TEST_CASE("a member that leaves is not lost to the directory") {
  const Joined directory = start_worker(joining(0));
  Joined first = start_worker(joining(1, directory.address()));
  wait_for_members(directory.address(), 2);
  CHECK(first.worker->drain(kLong));
  first.worker.reset();
  wait_for_members(directory.address(), 1);
  wait_until([&] {
    return directory.warnings->mention("[members] /job:worker/task:1 has left");
  });
  CHECK_FALSE(directory.warnings->mention("is lost"));
}

TEST_CASE("a worker leaves when a process of the cluster asks it to") {
  for (const bool is_member : {false, true}) {
    const Joined directory = start_worker(joining(0));
    std::promise<void> asked;
    std::atomic<bool> is_asked{false};
    WorkerOptions options =
        is_member ? joining(1, directory.address()) : joining(1);
    options.on_asked_to_leave = [&] {
      if (!is_asked.exchange(true)) asked.set_value();
    };
    Joined worker = start_worker(std::move(options));
    const ClusterAccess access = access_by(worker.address());
    auto left = std::async(std::launch::async, [&] {
      return drain_worker(access, {"worker", 1});
    });
    asked.get_future().get();
    CHECK(worker.worker->drain(kLong));
    worker.worker.reset();
    must(left.get());
  }
}

TEST_CASE("a process that asks another worker to leave is told so") {
  const Joined worker = start_worker(joining(0));
  const ClusterAccess access = access_by(worker.address());
  const Status other = drain_worker(access, {"worker", 1});
  CHECK(other.code() == Code::kFailedPrecondition);
  CHECK(contains(other.message(), "not /job:worker/task:1"));
  const Status refused = drain_worker(access, {"worker", 0});
  CHECK(refused.code() == Code::kFailedPrecondition);
  CHECK(contains(refused.message(), "this worker ends with its process"));
}

}  // namespace tagflow::net
