// What limits the preparation of a signature: its time, its cancellation, and
// the number of nodes.
#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "actors/plan/distribute.h"
#include "actors/session/session_state.h"
#include "devices/kernel_registry.h"
#include "graph/builder/builder.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/actors/function_graph.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph::testing;

namespace {

// y: a function of 10 nodes, four times.
FunctionGraph calls() {
  FunctionGraph g;
  FunctionDef ten =
      function("ten", {"n: int32"}, {"r: int32"}, {}, {{"r", "sum_8:z:0"}});
  std::string last = "n";
  for (int i = 0; i < 9; ++i) {
    const std::string name = fmt::format("sum_{}", i);
    ten.nodes.push_back(body_int(name, "Add", last, "n"));
    last = name + ":z:0";
  }
  g.define(ten);
  g.add({int_placeholder("x"), body_node("a", "ten", {"x"}),
         body_node("b", "ten", {"a"}), body_node("c", "ten", {"b"}),
         body_node("y", "ten", {"c"})});
  return g;
}

// How often TestFolded ran while a graph was compiled.
std::atomic<int> folded{0};

class FoldedKernel final : public devices::CheapKernel {
 public:
  explicit FoldedKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    if (context.step().commits == nullptr) ++folded;
    context.set_output(0, context.input(0));
    return {};
  }
};

// y: the shape of x, which a form knows.
Graph folded_shape() {
  Graph graph;
  graph::OpRegistry::global().add(graph::OpDefBuilder("TestFolded")
                                      .input("x: int32")
                                      .output("y: int32")
                                      .shape(graph::unchanged_shape));
  devices::KernelRegistry::global().add<FoldedKernel>("TestFolded");
  const graph::Scope s(graph);
  const graph::Output x = graph::ops::placeholder(
      s.named("x"), DataType::kFloat, PartialShape({-1}));
  s.named("y").op("TestFolded", {graph::ops::shape(s, x)});
  REQUIRE(s.status().ok());
  return graph;
}

const std::vector<Feed> kFeeds = {{"x", Tensor::scalar(1)}};

RunOptions in_a_nanosecond() {
  RunOptions options;
  options.timeout = std::chrono::nanoseconds(1);
  return options;
}

Status run_async(Session& session, const RunOptions& options) {
  std::promise<Status> answer;
  session.run_async(kFeeds, {"y"}, {}, options, [&](auto result, RunStats) {
    answer.set_value(result.status());
  });
  return answer.get_future().get();
}

}  // namespace

TEST_CASE("the time-out of a run ends the compilation of its signature") {
  const auto session = calls().session({});
  const auto check_late = [](const Status& status) {
    CHECK(contains(message_of(status, Code::kDeadlineExceeded),
                   "[session] the time-out of 1e-09 s passed while "));
  };
  check_late(session->run(kFeeds, {"y"}, {}, in_a_nanosecond()).status());
  check_late(run_async(*session, in_a_nanosecond()));
  check_late(
      session->make_callable({"x"}, {"y"}, {}, in_a_nanosecond()).status());
  SessionOptions options;
  options.timeout = std::chrono::nanoseconds(1);
  const auto hasty = calls().session(options);
  check_late(hasty->make_callable({"x"}, {"y"}).status());
  check_late(hasty->explain({"x"}, {"y"}).status());
  // Nothing of it stays.
  CHECK(session->counters().signatures == 0);
  CHECK(must(run_int(*session, 1)) == 10'000);
}

TEST_CASE("the time-out of a run ends the first check of a large graph") {
  Graph graph;
  const graph::Scope s(graph);
  graph::Output y = graph::ops::constant(s, 1.0f);
  for (int i = 0; i < 1000; ++i) y = graph::ops::square(s, y);
  graph::ops::identity(s.named("y"), y);
  REQUIRE(s.status().ok());
  const auto session = make_session({}, graph);
  CHECK(contains(
      message_of(session->run({}, {"y"}, {}, in_a_nanosecond()).status(),
                 Code::kDeadlineExceeded),
      "passed while the graph was checked ("));
  must_run(*session, {}, {"y"});
}

TEST_CASE("the time of a run is that of the compilations that it waits for") {
  const auto engine = must(Engine::create({.workers = 1}));
  const auto session = std::make_shared<SessionState>(
      SessionOptions(), must(engine->devices("")));
  must(session->extend(folded_shape()));
  RunOptions options;
  options.timeout = std::chrono::hours(1);
  const auto over = SessionState::Clock::now() - 2 * options.timeout;
  const Signature signature{{"x"}, {"y"}, {}};
  CHECK(session->prepare(signature, options, over).status().code() ==
        Code::kDeadlineExceeded);
  const auto prepared = must(session->prepare(signature, options));
  const std::vector<Tensor> x{Tensor::vector<float>({1, 2, 3})};
  // Their time is up when they begin. Some are short enough to have a result
  // before that is seen, but no form is made for them.
  for (int i = 0; i < kEnough; ++i) {
    const auto late = session->run(prepared, x, options, nullptr, over);
    CHECK((late.ok() || late.status().code() == Code::kDeadlineExceeded));
  }
  CHECK(folded == 0);
  for (int i = 0; i < 2 * kEnough; ++i)
    must(session->run(prepared, x, options, nullptr));
  CHECK(folded == 1);
  CHECK(session->close({}).ok());
}

TEST_CASE("a cancellation ends the compilation of a signature") {
  const auto session = calls().session({});
  RunOptions options;
  options.cancel.emplace();
  options.cancel->cancel();
  const auto check_cancelled = [](const Status& status) {
    CHECK(contains(message_of(status, Code::kCancelled),
                   "[session] the run was cancelled while "));
  };
  check_cancelled(session->run(kFeeds, {"y"}, {}, options).status());
  check_cancelled(run_async(*session, options));
  check_cancelled(session->make_callable({"x"}, {"y"}, {}, options).status());
  CHECK(must(run_int(*session, 1)) == 10'000);
}

TEST_CASE("a session refuses a run that needs more nodes than it allows") {
  SessionOptions options;
  options.max_nodes = 44;
  // 5 nodes, and four times 10.
  const auto small = calls().session(options);
  CHECK(contains(
      message_of(small->run(kFeeds, {"y"}).status(), Code::kResourceExhausted),
      "with its functions expanded the graph has more than 44 "
      "nodes, the limit: ten \"a\", which calls \"ten\", becomes "
      "10"));
  // What needs less of the graph runs.
  CHECK(must(run_int(*small, 1, "a")) == 10);
  options.max_nodes = 13;
  CHECK(contains(
      message_of(calls().session(options)->run(kFeeds, {"x"}).status(),
                 Code::kResourceExhausted),
      "[graph] 14 nodes, those of functions included, are over the limit of "
      "13"));
  options.max_nodes = 0;
  CHECK(message_of(Session::create(options).status(), Code::kInvalidArgument) ==
        "[session] max_nodes must be at least 1, but is 0");
}
