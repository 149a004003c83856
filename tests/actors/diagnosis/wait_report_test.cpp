// Reports about steps over several devices that cannot go on: which node waits
// for which.
#include <doctest/doctest.h>

#include <thread>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/actors/program.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;  // NOLINT: the builder's vocabulary

namespace {

// Passes its input on; if that is 2, not before the step is cut short.
class StallKernel : public devices::AsyncKernel {
 public:
  explicit StallKernel(const devices::KernelInfo&) {}
  void compute_async(devices::KernelContext& context,
                     devices::Completion done) const override {
    std::thread([&context, done = std::move(done)] {
      while (context.input(0).scalar_value<int>() == 2 && !context.cancelled())
        std::this_thread::yield();
      context.set_output(0, context.input(0));
      done({});
    }).detach();
  }
};

Output stall(const Scope& s, const Input& x) {
  static const bool once = [] {
    OpRegistry::global().add(OpDefBuilder("TestStall")
                                 .input("x: int32")
                                 .output("y: int32")
                                 .stateful()
                                 .shape(unchanged_shape));
    devices::KernelRegistry::global().add<StallKernel>("TestStall");
    return true;
  }();
  (void)once;
  return s.op("TestStall", {x});
}

// Runs out of time, and checks what is said of it. A machine under load may not
// come so far in it, or not to rest within the grace: then it gets more.
void check_late(const Program& p, const Output& fetch,
                const SessionOptions& options, const std::string& expected) {
  auto session = make_session(options, p.graph);
  RunOptions run;
  std::string actual, wanted;
  for (int ms = 20; ms < 20'000; ms *= 2) {
    run.timeout = std::chrono::milliseconds(ms);
    const Status status = session->run({}, {fetch.name()}, {}, run).status();
    REQUIRE(status.code() == Code::kDeadlineExceeded);
    actual = status.message();
    wanted = fmt::format(
        "[session] the run took longer than its time-out of {} s; {}", ms / 1e3,
        expected);
    if (actual == wanted) break;
  }
  CHECK(actual == wanted);
}

}  // namespace

TEST_CASE("smoke: a time-out names who has not answered, and who waits") {
  for (SessionOptions options : configurations()) {
    options.devices = "cpu:3";
    CAPTURE(describe(options));
    Program p;
    const Output x = stall(p.s.with_device("/cpu:0").named("x"), 2);
    const Output y = ops::neg(p.s.with_device("/cpu:1").named("y"), x);
    const Output z = ops::abs(p.s.with_device("/cpu:2").named("z"), y);
    REQUIRE(p.s.ok());
    check_late(
        p, z, options,
        "on CPU:0 TestStall \"x\" in the root frame has not answered; on "
        "CPU:1 \"y\" in the root frame waits for \"x\" of CPU:0; on "
        "CPU:2 \"z\" in the root frame waits for \"y\" of CPU:1, which "
        "waits for \"x\" of CPU:0");
  }
}

TEST_CASE("a time-out names no device if the session has one device only") {
  Program p;
  const Output x = stall(p.s.named("x"), 2);
  const Output y = ops::neg(p.s.named("y"), x);
  REQUIRE(p.s.ok());
  check_late(p, y, {}, "TestStall \"x\" in the root frame has not answered");
}

TEST_CASE("a time-out in a loop over devices says in which iteration") {
  Program p;
  const Outputs last = while_loop(
      p.s.with_device("/cpu:0").named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 5); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Scope far = in.with_device("/cpu:1");
        const Output y = ops::neg(far.named("y"), stall(far.named("x"), v[0]));
        return {ops::add(in.named("next"), v[0], 1),
                ops::add(in.named("sum"), v[1], y)};
      },
      {0, 0}, {.parallel_iterations = 1});
  REQUIRE(p.s.ok());
  SessionOptions options;
  options.devices = "cpu:2";
  options.passes = PassSet::only(Pass::kEdges);
  check_late(p, last[1], options,
             "on CPU:1 TestStall \"loop/x\" in iteration "
             "\"loop/while_context/2\" has not answered; on CPU:0 "
             "\"loop/sum\" in iteration \"loop/while_context/2\" waits for "
             "\"loop/y\" of CPU:1, which waits for \"loop/x\" of CPU:1; on "
             "CPU:0 frame "
             "\"loop/while_context\" had come to iteration 2; on CPU:1 frame "
             "\"loop/while_context\" had come to iteration 2");
}

// In iteration 0 of the loop, a device waits for what nobody sends.
TEST_CASE("a deadlock over devices says who waits for what of whom") {
  Program p;
  const Outputs last = while_loop(
      p.s.with_device("/cpu:0").named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 5); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Scope there = in.with_device("/cpu:1");
        const Output never =
            there.named("never").with_control_dependencies({v[1]}).op(
                "_Recv", {},
                {{"tensor_type", DataType::kInt32},
                 {"tensor_name", std::string("lost")},
                 {"send_device", std::string("/cpu:9")},
                 {"send_device_incarnation", int64_t(1)},
                 {"recv_device", std::string("/cpu:1")}});
        return {ops::add(in.named("next"), v[0], 1),
                ops::neg(there.named("far").with_control_dependencies({never}),
                         v[1])};
      },
      {0, 0}, {.parallel_iterations = 1});
  const Output z = ops::abs(p.s.with_device("/cpu:2").named("z"), last[1]);
  REQUIRE(p.s.ok());
  SessionOptions options;
  options.devices = "cpu:3";
  options.passes = PassSet::only(Pass::kEdges);
  const auto out = p.try_run({}, {z}, options);
  REQUIRE(!out.ok());
  CHECK(out.status().code() == Code::kDeadlock);
  const std::string place = " in iteration \"loop/while_context/0\" ";
  const std::string cause = ", which waits for \"loop/never\" of CPU:1; ";
  CHECK(out.status().message() ==
        "[session] the step can make no progress: on CPU:1 _Recv "
        "\"loop/never\"" +
            place +
            "waits for \"lost\" of /cpu:9, which nobody sends; on CPU:0 _Recv "
            "\"loop/far/recv\"" +
            place + "waits for \"loop/far\" of CPU:1" + cause +
            "on CPU:2 \"z\" in the root frame waits for \"loop/Exit_1\" of "
            "CPU:0" +
            cause + "the fetch \"" + z.name() + "\" has not arrived");
}
