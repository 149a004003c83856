// Code that a session calls while it compiles calls the session.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <thread>

#include "actors/plan/distribute.h"
#include "devices/kernel_registry.h"
#include "graph/builder/builder.h"
#include "graph/op_registry.h"
#include "graph/placement/cost_model.h"
#include "graph/shape_context.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

std::function<void()> in_kernel;  // called while it is folded
std::function<void()> in_shape_function;

// Pure and cheap: the session folds it.
class CallingKernel : public devices::CheapKernel {
 public:
  explicit CallingKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    if (in_kernel) in_kernel();
    context.set_output(0, context.input(0));
    return {};
  }
};

void register_op() {
  static const bool once = [] {
    OpRegistry::global().add(OpDefBuilder("TestCalling")
                                 .input("x: int32")
                                 .output("y: int32")
                                 .shape([](ShapeContext& context) {
                                   if (in_shape_function) in_shape_function();
                                   return unchanged_shape(context);
                                 }));
    devices::KernelRegistry::global().add<CallingKernel>("TestCalling");
    return true;
  }();
  (void)once;
}

Graph one_node(const std::string& name) {
  register_op();
  Graph graph;
  const Scope s = Scope(graph).sub_scope(name + "s");
  ops::identity(Scope(graph).named(name),
                s.op("TestCalling", {s.constant(Tensor::scalar(3))}));
  REQUIRE(s.status().ok());
  return graph;
}

// All that needs the graph, of a session that is busy with it on this thread.
void expect_refused(Session& session) {
  const Graph more = one_node("more");
  const auto refused = [](const Status& status) {
    INFO(status.to_string());
    CHECK(status.code() == Code::kFailedPrecondition);
    CHECK(status.message().find("called this session while") !=
          std::string::npos);
  };
  refused(session.extend(more));
  refused(session.run({}, {"other"}).status());
  refused(session.make_callable({}, {"other"}).status());
  refused(session.explain({}, {"other"}).status());
  refused(session.learn({}));
  session.run_async({}, {"other"}, {}, {},
                    [&](auto answer, RunStats) { refused(answer.status()); });
}

}  // namespace

TEST_CASE("smoke: a kernel that is folded cannot ask its session to compile") {
  auto session = make_session({}, one_node("y"));
  int calls = 0;
  in_kernel = [&] {
    if (++calls == 1) expect_refused(*session);
  };
  const Status none = session->run({}, {"none"}).status();
  CHECK(none.code() == Code::kNotFound);
  CHECK(must_run(*session, {}, {"y"})[0].scalar_value<int32_t>() == 3);
  CHECK(calls >= 1);
  in_kernel = nullptr;
  // Afterwards it can.
  CHECK(session->extend(one_node("more")).ok());
  CHECK(must_run(*session, {}, {"more"})[0].scalar_value<int32_t>() == 3);
}

TEST_CASE("a run waits for another compilation as long as its time-out says") {
  auto session = make_session({}, one_node("y"));
  const std::string compiled = "another signature of the session was compiled";
  RunOptions late, cancelled;
  late.timeout = std::chrono::milliseconds(1);
  cancelled.cancel.emplace();
  cancelled.cancel->cancel();
  int calls = 0;
  in_kernel = [&] {
    if (++calls > 1) return;
    std::thread other([&] {
      CHECK(session->run({}, {"ys/TestCalling"}, {}, late).status().message() ==
            "[session] the time-out of 0.001 s passed while " + compiled);
      CHECK(session->make_callable({}, {"ys/TestCalling"}, {}, cancelled)
                .status()
                .message() ==
            "[session] the run was cancelled while " + compiled);
    });
    other.join();
  };
  CHECK(must_run(*session, {}, {"y"})[0].scalar_value<int32_t>() == 3);
  CHECK(calls >= 1);
  in_kernel = nullptr;
  CHECK(session->run({}, {"ys/TestCalling"}).ok());
}

TEST_CASE("closing a session ends a compilation, whose caller learns it") {
  using Call = Status (*)(Session&);
  for (const Call call :
       {Call([](Session& session) { return session.run({}, {"y"}).status(); }),
        Call([](Session& session) {
          return session.explain({}, {"y"}).status();
        })}) {
    auto session = make_session({}, one_node("y"));
    in_kernel = [&] { CHECK(session->close().ok()); };
    const Status status = call(*session);
    in_kernel = nullptr;
    CHECK(status.to_string() ==
          "FailedPrecondition: [session] the session is closed");
  }
}

TEST_CASE("smoke: a kernel that is folded may run another session") {
  auto session = make_session({}, one_node("y"));
  auto other = make_session({}, one_node("y"));
  int calls = 0;
  in_kernel = [&] {
    if (++calls == 1)
      CHECK(must_run(*other, {}, {"y"})[0].scalar_value<int32_t>() == 3);
  };
  CHECK(must_run(*session, {}, {"y"})[0].scalar_value<int32_t>() == 3);
  CHECK(calls >= 2);
  in_kernel = nullptr;
}

TEST_CASE("smoke: a shape function cannot ask the session it extends") {
  auto session = make_session({}, one_node("y"));
  const Graph more = one_node("more");
  int calls = 0;
  in_shape_function = [&] {
    if (++calls == 1)
      CHECK(session->run({}, {"y"}).status().code() ==
            Code::kFailedPrecondition);
  };
  CHECK(session->extend(more).ok());
  in_shape_function = nullptr;
  CHECK(calls >= 1);
  CHECK(must_run(*session, {}, {"more"})[0].scalar_value<int32_t>() == 3);
}

TEST_CASE("smoke: on_warning cannot call the session that compiles") {
  Graph graph;
  const Scope s(graph);
  ops::neg(s.with_device("/device:GPU:7").named("y"), 3);
  REQUIRE(s.status().ok());
  std::unique_ptr<Session> session;
  int warnings = 0;
  SessionOptions options;
  options.soft_placement = true;
  options.passes = PassSet::none();
  options.on_warning = [&](const std::string&) {
    if (++warnings == 1)
      CHECK(session->explain({}, {"y"}).status().code() ==
            Code::kFailedPrecondition);
  };
  session = make_session(options, graph);
  CHECK(must_run(*session, {}, {"y"})[0].scalar_value<int32_t>() == -3);
  CHECK(warnings >= 1);
}
