#include "actors/watch/trace.h"

#include <algorithm>
#include <future>
#include <map>
#include <set>

#include "actors/watch/observer.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/program.h"

using namespace tagflow;
using namespace tagflow::actors;
using graph::Output;
using graph::Outputs;
using graph::Scope;
namespace ops = tagflow::graph::ops;

namespace {

Outputs count_to(const Scope& s, int limit) {
  return graph::while_loop(
      s,
      [limit](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], limit);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1)};
      },
      {0});
}

void record(const Program& program, const Outputs& fetches, Trace& trace,
            SessionOptions options = {}) {
  REQUIRE(program.s.ok());
  auto session = Session::create(options).value();
  REQUIRE(session->extend(program.graph).ok());
  std::vector<std::string> names;
  for (const Output& fetch : fetches) names.push_back(fetch.name());
  RunOptions run;
  run.trace = &trace;
  REQUIRE(session->run({}, names, {}, run).ok());
}

size_t count(const Trace& trace, TraceEvent::Kind kind,
             std::string_view op = {}) {
  size_t found = 0;
  for (const auto& track : trace.tracks())
    found += size_t(std::ranges::count_if(track, [&](const TraceEvent& event) {
      return event.kind == kind && (op.empty() || event.node->op == op);
    }));
  return found;
}

// Of each track: activities in a row, and in each what happened in it, one
// after another. Kernels that were sent to a thread have none.
void check_times(const Trace& trace) {
  for (const auto& track : trace.tracks()) {
    int64_t last = 0;         // what is before has ended then
    int64_t end = INT64_MAX;  // of the activity
    for (const TraceEvent& event : track) {
      CHECK(event.begin <= event.end);
      CHECK(event.begin >= last);
      if (event.kind == TraceEvent::kActivity) {
        CHECK((end == INT64_MAX || event.begin >= end));
        last = event.begin;
        end = event.end;
      } else if (event.kind != TraceEvent::kCompute) {
        CHECK(event.end <= end);
        last = event.end;
      }
    }
  }
}

}  // namespace

TEST_CASE("a trace has every iteration, what fired in it and what came to it") {
  const Program program;
  const Outputs last = count_to(program.s, 3);
  SessionOptions options;
  options.workers = 1;
  options.passes = graph::PassSet::only(graph::Pass::kEdges);
  Trace trace;
  record(program, last, trace, options);
  CHECK(count(trace, TraceEvent::kNode, "Less") == 4);
  CHECK(count(trace, TraceEvent::kNode, "Switch") == 4);
  CHECK(count(trace, TraceEvent::kNode, "AddV2") == 3);
  CHECK(count(trace, TraceEvent::kSkip, "AddV2") == 1);
  CHECK(count(trace, TraceEvent::kArrive, "NextIteration") == 3);
  CHECK(count(trace, TraceEvent::kArrive, "Exit") == 1);
  std::set<int64_t> iterations;
  for (const auto& track : trace.tracks())
    for (const TraceEvent& event : track)
      if (event.kind == TraceEvent::kActivity && !event.frame.empty())
        iterations.insert(event.tag.iteration);
  CHECK(iterations == std::set<int64_t>{0, 1, 2, 3});
  REQUIRE(trace.frames().size() == 2);
  CHECK(trace.frames()[1].caller.frame_lo ==
        trace.frames()[0].instance.frame_lo);
  CHECK(trace.dropped() == 0);
  check_times(trace);
}

TEST_CASE("a trace says the same whatever the policy and the workers") {
  for (const HandOff policy :
       {HandOff::kDirect, HandOff::kMailbox, HandOff::kRandom}) {
    for (const int workers : {1, 2}) {
      const Program program;
      const Outputs last = graph::while_loop(
          program.s,
          [](const Scope& in, const Outputs& v) {
            return ops::less(in, v[0], 5);
          },
          [](const Scope& in, const Outputs& v) -> Outputs {
            return {ops::add(in, v[0], ops::sub(in, count_to(in, 3)[0], 2))};
          },
          {0});
      SessionOptions options;
      options.workers = workers;
      options.hand_off = policy;
      options.passes = graph::PassSet::none();
      Trace trace;
      record(program, last, trace, options);
      CHECK(count(trace, TraceEvent::kNode, "LoopCond") == 6 + 5 * 4);
      CHECK(count(trace, TraceEvent::kNode, "AddV2") == 5 + 5 * 3);
      // The last iteration of the outer one starts the inner one dead.
      CHECK(trace.frames().size() == 1 + 1 + 6);
      CHECK(trace.dropped() == 0);
      check_times(trace);
    }
  }
}

TEST_CASE("a heavy kernel of a trace runs where it was sent") {
  const Program program;
  const Scope& s = program.s;
  Outputs products;
  for (int i = 0; i < 4; ++i) {
    const Output size = s.constant(Tensor::vector<int32_t>({200, 200}));
    const Output matrix = ops::fill(s, size, float(i));
    products.push_back(ops::matmul(s, matrix, matrix));
  }
  SessionOptions options;
  options.workers = 2;
  options.passes = graph::PassSet::none();
  Trace trace;
  record(program, products, trace, options);
  CHECK(count(trace, TraceEvent::kNode, "MatMul") == 4);
  CHECK(count(trace, TraceEvent::kCompute, "MatMul") == 4);
  check_times(trace);
}

TEST_CASE("a trace without room keeps what came first, and counts the rest") {
  const Program program;
  const Outputs last = count_to(program.s, 5000);
  // A block at least for each thread that may run the loop, and more.
  Trace trace(4 * TraceBuffer::kBlock);
  SessionOptions options;
  options.workers = 1;
  record(program, last, trace, options);
  CHECK(trace.dropped() > 5000);
  CHECK(count(trace, TraceEvent::kActivity) < 1500);
  CHECK(count(trace, TraceEvent::kActivity) > 50);
  check_times(trace);
}

TEST_CASE("a trace without room counts the accelerator's launches it drops") {
  Trace trace(TraceBuffer::kBlock);
  devices::AcceleratorActivity activity;
  activity.what = "node";
  for (size_t i = 0; i < TraceBuffer::kBlock; ++i)
    trace.add_activity("STREAM:0", activity);
  CHECK(trace.launches().size() == TraceBuffer::kBlock / 16);
  CHECK(trace.dropped() == TraceBuffer::kBlock - trace.launches().size());
}

TEST_CASE(
    "traces of runs at once get what the accelerator does for each of them") {
  const Program program;
  const Scope there = program.s.with_device("/device:STREAM:0");
  Output y = program.input("x", DataType::kFloat, PartialShape({100}));
  for (int i = 0; i < 3; ++i) y = ops::neg(there, y);
  REQUIRE(program.s.ok());
  SessionOptions options;
  options.devices = "cpu:1,stream:1";
  options.passes = graph::PassSet::none();
  auto session = make_session(options, program.graph);
  const std::vector<Feed> feeds = {
      {"x", Tensor::make(DataType::kFloat, {100})}};
  constexpr int kRuns = 20;
  std::vector<std::unique_ptr<Trace>> traces;
  std::vector<std::promise<Status>> answers(2 * kRuns);
  for (int i = 0; i < kRuns; ++i) {
    traces.push_back(std::make_unique<Trace>());
    for (const int which : {2 * i, 2 * i + 1}) {
      RunOptions run;
      run.trace = traces.back().get();  // of both
      session->run_async(feeds, {y.name()}, {}, run,
                         [&answers, which](auto out, const RunStats&) {
                           answers[size_t(which)].set_value(out.status());
                         });
    }
  }
  for (auto& answer : answers) CHECK(answer.get_future().get().ok());
  for (const auto& trace : traces) {
    const auto kernels = std::ranges::count_if(
        trace->launches(),
        [](const TraceLaunch& launch) { return !launch.node.empty(); });
    CHECK(kernels == 6);
    const size_t copies = trace->launches().size() - size_t(kernels);
    CHECK(copies >= 2);  // the results, at least
    CHECK(copies == traces[0]->launches().size() - 6);
  }
}

TEST_CASE("a trace that ends leaves that of another run open") {
  const Program program;
  const Scope& s = program.s;
  const Scope there = s.with_device("/device:STREAM:0");
  const Output x = program.input("x", DataType::kFloat, PartialShape({100}));
  ops::neg(there.named("brief"), x);
  ops::neg(there.named("last"), test_block(s.with_device("/device:CPU:0"),
                                           ops::neg(there.named("first"), x)));
  REQUIRE(s.ok());
  SessionOptions options;
  options.devices = "cpu:1,stream:1";
  options.passes = graph::PassSet::none();
  auto session = make_session(options, program.graph);
  const std::vector<Feed> feeds = {
      {"x", Tensor::make(DataType::kFloat, {100})}};
  Trace longer, shorter;
  Blockade blockade;
  std::promise<Status> answer;
  RunOptions run;
  run.trace = &longer;
  session->run_async(feeds, {"last"}, {}, run, [&](auto out, const RunStats&) {
    answer.set_value(out.status());
  });
  blockade.until_begun(1);
  run.trace = &shorter;
  REQUIRE(session->run(feeds, {"brief"}, {}, run).ok());
  blockade.let_go();
  REQUIRE(answer.get_future().get().ok());
  const auto kernels = [](const Trace& trace) {
    std::set<std::string> names;
    for (const TraceLaunch& launch : trace.launches())
      if (!launch.node.empty()) names.insert(std::string(launch.node));
    return names;
  };
  CHECK(kernels(longer) == std::set<std::string>{"first", "last"});
  CHECK(kernels(shorter) == std::set<std::string>{"brief"});
}

TEST_CASE("a trace takes several runs, and an observer sees them too") {
  class Counter : public Observer {
   public:
    void on_fire(const Location&, const graph::Node&, bool) override {
      ++fired;
    }
    int fired = 0;
  } counter;
  const Program program;
  const Outputs last = count_to(program.s, 3);
  REQUIRE(program.s.ok());
  SessionOptions options;
  options.workers = 1;
  auto session = Session::create(options).value();
  REQUIRE(session->extend(program.graph).ok());
  Trace trace;
  RunOptions run;
  run.trace = &trace;
  run.observer = &counter;
  for (int i = 0; i < 3; ++i)
    REQUIRE(session->run({}, {last[0].name()}, {}, run).ok());
  CHECK(trace.frames().size() == 6);
  CHECK(count(trace, TraceEvent::kNode) + count(trace, TraceEvent::kSkip) ==
        size_t(counter.fired));
  check_times(trace);
}
