#include "apps/shared/runs/stall_watch.h"

#include <doctest/doctest.h>

#include "apps/shared/program/exit_code.h"
#include "devices/kernel_registry.h"
#include "graph/builder/builder.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::apps {
namespace {

// Ends its kernel if the step is cancelled, which is all that ever comes.
class Waiting : public devices::CancelHook {
 public:
  explicit Waiting(devices::Completion done) : done_(std::move(done)) {}

 protected:
  void on_cancel() override {
    done_(error(Code::kCancelled, "[TestNever] the step was cancelled"));
  }

 private:
  devices::Completion done_;
};

class NeverKernel : public devices::AsyncKernel {
 public:
  explicit NeverKernel(const devices::KernelInfo&) {}
  devices::WaitsFor waits_for() const override {
    return devices::WaitsFor::kSharedState;
  }
  void compute_async(devices::KernelContext& context,
                     devices::Completion done) const override {
    const auto waiting = std::make_shared<Waiting>(done);
    if (!context.on_cancel(waiting) && waiting->claim())
      done(error(Code::kCancelled, "[TestNever] the step was cancelled"));
  }
};

graph::Output never(const graph::Scope& s) {
  static const bool once = [] {
    graph::OpRegistry::global().add(graph::OpDefBuilder("TestNever")
                                        .output("y: int32")
                                        .stateful()
                                        .shape(graph::scalar_shape));
    devices::KernelRegistry::global().add<NeverKernel>("TestNever");
    return true;
  }();
  (void)once;
  return s.op("TestNever", {})[0];
}

}  // namespace

TEST_CASE("a run that waits for tokens that nobody sends is a deadlock") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const graph::Output y = never(s.named("taken"));
  REQUIRE(s.ok());
  auto session = actors::Session::create({}).value();
  REQUIRE(session->extend(graph).ok());
  actors::RunOptions run;
  run.cancel.emplace();
  const StallWatch watch(*session, *run.cancel);
  const Status status = session->run({}, {y.name()}, {}, run).status();
  CHECK(status.code() == Code::kCancelled);
  const Status told = watch.status_of(status);
  CHECK(told.code() == Code::kDeadlock);
  CHECK(told.message().find("TestNever \"taken\"") != std::string_view::npos);
  CHECK(run_time_error(told).exit_code == ExitCode::kDeadlock);
}

TEST_CASE("a stall watch between other runs waits for several answers") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const graph::Output y = never(s.named("taken"));
  REQUIRE(s.ok());
  auto session = actors::Session::create({}).value();
  REQUIRE(session->extend(graph).ok());
  actors::RunOptions run;
  run.cancel.emplace();
  const StallWatch watch(*session, *run.cancel, /*between_runs=*/true);
  const Status status = session->run({}, {y.name()}, {}, run).status();
  CHECK(watch.status_of(status).code() == Code::kDeadlock);
}

TEST_CASE("the watch leaves the errors of runs that are not stalled alone") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const graph::Output x = s.constant(Tensor::scalar(1), "x");
  auto session = actors::Session::create({}).value();
  REQUIRE(session->extend(graph).ok());
  actors::RunOptions run;
  run.cancel.emplace();
  const StallWatch watch(*session, *run.cancel);
  CHECK(watch.status_of(session->run({}, {x.name()}, {}, run).status()).ok());
  const Status cancelled = error(Code::kCancelled, "by somebody");
  CHECK(watch.status_of(cancelled).to_string() == cancelled.to_string());
}

}  // namespace tagflow::apps
