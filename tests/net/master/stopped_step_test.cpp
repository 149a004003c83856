// Steps over workers that cannot go on, that are stopped, and that leave the
// state of the workers torn.
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "tests/actors/held_kernel.h"
#include "tests/actors/process_cases.h"
#include "tests/actors/test_op.h"
#include "tests/net/local_worker.h"
#include "tests/reference/odd_loops.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;

using HoldKernel = actors::HeldKernel<struct Stopped>;

// Goes on when a step is held.
class AwaitKernel final : public devices::Kernel {
 public:
  explicit AwaitKernel(const devices::KernelInfo& /*info*/) {}
  Status compute(devices::KernelContext& context) const override {
    while (!HoldKernel::has_begun)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    context.set_output(0, context.input(0));
    return {};
  }
};

// Is not made until it is let go.
class LateKernel final : public devices::Kernel {
 public:
  explicit LateKernel(const devices::KernelInfo& /*info*/) {
    while (holds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Status compute(devices::KernelContext& context) const override {
    context.set_output(0, context.input(0));
    return {};
  }

  static inline std::atomic<bool> holds{true};
};

// In all processes of this program, whose digests are compared.
const bool kHasOps = (actors::add_test_op<HoldKernel>("TestHold"),
                      actors::add_test_op<AwaitKernel>("TestAwait"),
                      actors::add_test_op<LateKernel>("TestLate"), true);

// Two workers, and the options of a session on them.
struct Workers {
  explicit Workers(ClusterOptions cluster = local_cluster()) {
    for (uint32_t task = 0; task < 2; ++task) {
      workers.push_back(must(Worker::start(local_worker(task))));
      cluster.members.push_back(
          {{"worker", task}, {"localhost", workers.back()->port()}});
    }
    options.backend = must(Cluster::connect(std::move(cluster)));
    options.passes = PassSet::none();
  }

  std::vector<std::unique_ptr<Worker>> workers;
  actors::SessionOptions options;
};

// "bad" updates a variable of task 0, and fails on task 1 before it updates
// another one there, if x is -1; if x is -2, it fails before both updates.
struct TwoVariables : actors::Program {
  TwoVariables() {
    const Scope here = s.with_device("/job:worker/task:0");
    const Scope there = s.with_device("/job:worker/task:1");
    const ops::Variable v =
        ops::variable(here.named("v"), DataType::kInt32, PartialShape({}));
    const ops::Variable w =
        ops::variable(there.named("w"), DataType::kInt32, PartialShape({}));
    ops::group(s.named("init"),
               {ops::assign(here, v, ops::constant(here, 0)),
                ops::assign(there, w, ops::constant(there, 0))});
    const Output x = input("x", DataType::kInt32);
    const Output early = ops::assert_(
        here, ops::not_equal(here, x, ops::constant(here, -2)), {"too early"});
    const Output first =
        ops::assign_add(here.with_control_dependencies({early}), v, x);
    const Output sent =
        ops::identity(here.with_control_dependencies({first}), x);
    const Output check = ops::assert_(
        there, ops::not_equal(there, sent, ops::constant(there, -1)),
        {"a bad number"});
    ops::assign_add(there.named("update").with_control_dependencies({check}), w,
                    x);
    ops::identity(there.named("read"), ops::read(here, v));
    must(s.status());
  }
};

Status update(actors::Session& session, int x) {
  return session
      .run({{"x", Tensor::scalar(x)}}, {}, {"update"},
           actors::within_a_minute())
      .status();
}

}  // namespace

TEST_CASE("a step over workers that cannot go on says who waits for what") {
  // A node of the loop waits for its first iteration and for a later one; so
  // the limit of an inner loop does not come.
  reference::Odd odd;
  Node* both =
      odd.add("l/both", "AddV2", {{odd.loop.enter, 0}, {odd.loop.next, 0}});
  const auto inner =
      graph::testing::counter(odd.graph, "i", {odd.loop.body, 0}, {both, 0});
  odd.choose(inner.exit, inner.exit);
  for (Node* node : odd.graph.nodes())
    odd.graph.set_device(node, "/job:worker/task:0");
  Node* far = odd.add("far", "Abs", {{odd.graph.find("l/done"), 0}});
  odd.graph.set_device(far, "/job:worker/task:1");
  const Workers workers;
  const auto session = actors::make_session(workers.options, odd.graph);
  std::vector<actors::Feed> feeds;
  for (const auto& [name, value] : odd.feeds) feeds.push_back({name, value});
  const Status status =
      session->run(feeds, {"far"}, {}, actors::within_a_minute()).status();
  INFO(status.to_string());
  CHECK(status.code() == Code::kDeadlock);
  CHECK(status.message().starts_with(
      "[session] the step can make no progress; /job:worker/task:0: "));
  CHECK(contains(status.message(), "waits for 1 of its Enters: \"i/limit"));
  CHECK(contains(status.message(),
                 "; /job:worker/task:1: _Recv \"l/done/recv\" in the root "
                 "frame waits for \"l/done\" of "
                 "/job:worker/replica:0/task:0/device:CPU:0; "));
}

TEST_CASE("a time-out names what waits, and the worker on which it does") {
  const actors::processes::Waiting p;
  const Workers workers;
  const auto session = actors::make_session(workers.options, p.graph);
  actors::RunOptions soon;
  soon.timeout = std::chrono::milliseconds(200);
  const Status status = session->run({}, {"taken"}, {}, soon).status();
  INFO(status.to_string());
  CHECK(status.code() == Code::kDeadlineExceeded);
  CHECK(contains(status.message(), "time-out of 0.2 s"));
  CHECK(contains(status.message(),
                 "/job:worker/task:1: QueueDequeueV2 \"take\" in the root "
                 "frame has not answered"));
}

TEST_CASE("a time-out names the worker that compiles, and others go on") {
  actors::Program p;
  const Output x = p.input("x", DataType::kInt32);
  const Scope here = p.s.with_device("/job:worker/task:0");
  const Scope there = p.s.with_device("/job:worker/task:1");
  there.named("late").op("TestLate", {x});
  ops::neg(here.named("here"), x);
  ops::neg(there.named("there"), x);
  must(p.s.status());
  const Workers workers;
  const auto session = actors::make_session(workers.options, p.graph);
  const std::vector<actors::Feed> feeds{{"x", Tensor::scalar(1)}};
  actors::RunOptions soon;
  soon.timeout = std::chrono::milliseconds(200);
  const Status status = session->run(feeds, {"late"}, {}, soon).status();
  INFO(status.to_string());
  CHECK(status.code() == Code::kDeadlineExceeded);
  CHECK(contains(status.message(),
                 "the time-out of 0.2 s passed while /job:worker/task:1 "
                 "compiled its part"));
  const auto negated = [&](const char* fetch) {
    return session->run(feeds, {fetch}, {}, actors::within_a_minute());
  };
  CHECK(identical(must(negated("here"))[0], Tensor::scalar(-1)));
  LateKernel::holds = false;
  CHECK(identical(must(negated("there"))[0], Tensor::scalar(-1)));
}

TEST_CASE("a session is stalled if its run waits for a queue of a worker") {
  actors::Program p;
  const Scope there = p.s.with_device("/job:worker/task:1");
  const ops::Queue queue =
      ops::fifo_queue(there.named("q"), {DataType::kInt32},
                      {.shapes = {PartialShape::scalar()}});
  ops::enqueue(there.named("put"), queue, {p.input("x", DataType::kInt32)});
  ops::identity(p.s.with_device("/job:worker/task:0").named("taken"),
                ops::dequeue(there.named("take"), queue)[0]);
  must(p.s.status());
  const Workers workers;
  const auto session = actors::make_session(workers.options, p.graph);
  for (const int number : {7, 8}) {
    std::promise<Result<std::vector<Tensor>>> answer;
    session->run_async(
        {}, {"taken"}, {}, actors::within_a_minute(),
        [&](Result<std::vector<Tensor>> result, const actors::RunStats&) {
          answer.set_value(std::move(result));
        });
    std::optional<std::string> stall;
    while (!stall) {
      stall = session->stalled();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    INFO(*stall);
    CHECK(contains(*stall,
                   "waits for the parts of /job:worker/task:0, "
                   "/job:worker/task:1 (/job:worker/task:1: "));
    CHECK(contains(*stall, "QueueDequeueV2 \"take\" (queue \"q\" has 0"));
    must(session->run({{"x", Tensor::scalar(number)}}, {}, {"put"},
                      actors::within_a_minute()));
    CHECK_FALSE(session->stalled());
    const auto taken = must(answer.get_future().get());
    CHECK(must(taken[0].item<int32_t>()) == number);
  }
}

TEST_CASE("state that a failed step has torn is not updated until a reset") {
  const TwoVariables p;
  const Workers workers;
  const auto session = actors::make_session(workers.options, p.graph);
  must(session->run({}, {}, {"init"}, actors::within_a_minute()));
  must(update(*session, 1));
  CHECK(update(*session, -1).code() == Code::kInvalidArgument);
  const Status torn = update(*session, 1);
  INFO(torn.to_string());
  CHECK(torn.code() == Code::kFailedPrecondition);
  CHECK(contains(torn.message(), "the state of the workers is torn"));
  CHECK(contains(torn.message(), "a bad number"));
  CHECK(must(actors::must_run(*session, {}, {"read"})[0].item<int32_t>()) == 0);
  must(session->reset({""}));
  must(session->run({}, {}, {"init"}, actors::within_a_minute()));
  must(update(*session, 1));
}

TEST_CASE("a worker that does not end its part in time is given up") {
  REQUIRE(kHasOps);
  actors::Program p;
  const Scope here = p.s.with_device("/job:worker/task:0");
  const Scope there = p.s.with_device("/job:worker/task:1");
  const Output held = here.op("TestHold", {ops::constant(here, 1)})[0];
  ops::identity(here.named("held"), held);
  const Output ok = there.op("TestAwait", {p.input("ok", DataType::kBool)})[0];
  ops::assert_(there.named("check"), ok, {"a bad number"});
  must(p.s.status());
  ClusterOptions cluster = local_cluster();
  cluster.grace = std::chrono::milliseconds(100);
  const Workers workers(cluster);
  const auto session = actors::make_session(workers.options, p.graph);
  const auto run = [&] {
    return session
        ->run({{"ok", Tensor::scalar(false)}}, {"held"}, {"check"},
              actors::within_a_minute())
        .status();
  };
  const Status status = run();
  INFO(status.to_string());
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(contains(status.message(), "a bad number"));
  const Status later = run();
  HoldKernel::holds = false;
  INFO(later.to_string());
  CHECK(later.code() == Code::kUnavailable);
  CHECK(contains(later.message(),
                 "/job:worker/task:0 is lost: it did not abort step"));
}

TEST_CASE("a step that fails before it updates anything tears nothing") {
  const TwoVariables p;
  const Workers workers;
  const auto session = actors::make_session(workers.options, p.graph);
  must(session->run({}, {}, {"init"}, actors::within_a_minute()));
  CHECK(update(*session, -2).code() == Code::kInvalidArgument);
  must(update(*session, 1));
}

TEST_CASE("a cluster may tolerate state that is torn") {
  const TwoVariables p;
  ClusterOptions cluster = local_cluster();
  cluster.tolerates_torn_state = true;
  const Workers workers(cluster);
  const auto session = actors::make_session(workers.options, p.graph);
  must(session->run({}, {}, {"init"}, actors::within_a_minute()));
  CHECK(update(*session, -1).code() == Code::kInvalidArgument);
  must(update(*session, 1));
}

}  // namespace tagflow::net
