#include "apps/shared/program/owned_session.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "devices/kernel_registry.h"
#include "graph/builder/builder.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::apps {
namespace {

using namespace std::chrono_literals;

// What a kernel cannot pass until it is opened.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    is_reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_reached_; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_reached_ = false, is_open_ = false;
};

Gate* gate = nullptr;  // of the test that runs

class GateKernel : public devices::Kernel {
 public:
  explicit GateKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    gate->pass();
    context.set_output(0, context.input(0));
    return {};
  }
  double cost(const devices::KernelContext&) const override { return 1e9; }
};

graph::Output pass_gate(const graph::Scope& scope, const graph::Input& x) {
  static const bool once = [] {
    graph::OpRegistry::global().add(graph::OpDefBuilder("TestGate")
                                        .input("x: T")
                                        .output("y: T")
                                        .attr("T: type")
                                        .stateful()
                                        .shape(graph::unchanged_shape));
    devices::KernelRegistry::global().add<GateKernel>("TestGate");
    return true;
  }();
  (void)once;
  return scope.op("TestGate", {x})[0];
}

std::unique_ptr<actors::Session> make_session(const graph::Graph& graph) {
  actors::SessionOptions options;
  options.workers = 2;
  auto session = actors::Session::create(options).value();
  REQUIRE(session->extend(graph).ok());
  return session;
}

}  // namespace

TEST_CASE("a session that is at rest ends at once") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const graph::Output x = s.constant(Tensor::scalar(1), "x");
  OwnedSession session(make_session(graph));
  CHECK(session->run({}, {x.name()}).ok());
  CHECK(session.end(60s));
  CHECK(session.end(0s));  // there is none any more
  CHECK(!is_session_left());
}

TEST_CASE("a session whose kernel goes on is left, with what its runs use") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const graph::Output y = pass_gate(s, s.constant(Tensor::scalar(1), "x"));
  REQUIRE(s.ok());
  Gate closed;
  gate = &closed;
  const auto witness = std::make_shared<int>(1);
  std::promise<Status> answer;
  {
    OwnedSession session(make_session(graph));
    session.keep(witness);
    actors::RunOptions run;
    run.cancel.emplace();
    session->run_async({}, {y.name()}, {}, run,
                       [&](const auto& result, const actors::RunStats&) {
                         answer.set_value(result.status());
                       });
    closed.wait_until_reached();
    run.cancel->cancel();
    CHECK(answer.get_future().get().code() == Code::kCancelled);
    CHECK(!session.end(1ms));
  }
  CHECK(is_session_left());
  CHECK(witness.use_count() == 2);
  closed.open();
  while (is_session_left()) std::this_thread::yield();
  while (witness.use_count() > 1) std::this_thread::yield();
}

}  // namespace tagflow::apps
