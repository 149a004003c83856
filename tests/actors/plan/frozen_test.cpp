// Signatures that are compiled for the values of variables that they read.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "actors/plan/frozen_variables.h"
#include "actors/shared_state.h"
#include "graph/analysis/extract.h"
#include "graph/analysis/polls.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

std::vector<SessionOptions> hosts() {
  std::vector<SessionOptions> all = configurations();
  SessionOptions& options = all.emplace_back();
  options.devices = "cpu:2";
  options.scatter = 5;
  return all;
}

void run_targets(Session& session, const std::vector<std::string>& targets) {
  must(session.run({}, {}, targets, within_a_minute()));
}

float fetch_one(Session& session, const std::string& name,
                const std::vector<Feed>& feeds = {},
                RunStats* stats = nullptr) {
  return must(must_run(session, feeds, {name}, stats)[0].item<float>());
}

// Variables v (a handle) and r (a reference), both set by "init" and moved on
// by "add", and values of them, that are twice the square:
//   direct, and direct of r         2 v^2
//   looped                          2 v^2, as a sum of a loop
//   chosen                          2 v^2 where "p", else -1
Graph squares() {
  Graph graph;
  const Scope s(graph);
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kFloat, PartialShape::scalar());
  const Output r = ops::reference_variable(s.named("r"), DataType::kFloat,
                                           PartialShape::scalar());
  const Output init = ops::assign(s.named("init_v"), v, 1.0f);
  ops::identity(s.named("init").with_control_dependencies({init}),
                ops::assign(s, r, 1.0f));
  const Output add = ops::assign_add(s.named("add_v"), v, 1.0f);
  ops::identity(s.named("add").with_control_dependencies({add}),
                ops::assign_add(s, r, 1.0f));
  const auto twice = [](const Scope& scope, const Output& x) {
    return ops::mul(scope, ops::mul(scope, x, x), 2.0f);
  };
  ops::identity(s.named("direct"), twice(s, ops::read(s, v)));
  ops::identity(s.named("direct_r"), twice(s, ops::identity(s, r)));
  const auto loop = [&](const auto& value) {
    return while_loop(
        s,
        [&](const Scope& in, const Outputs& x) {
          return ops::less(in, x[0], 2);
        },
        [&](const Scope& in, const Outputs& x) -> Outputs {
          const Output now = value(in);
          return {ops::add(in, x[0], 1),
                  ops::add(in, x[1], ops::mul(in, now, now))};
        },
        {ops::constant(s, 0), ops::constant(s, 0.0f)})[1];
  };
  ops::identity(s.named("looped"),
                loop([&](const Scope& in) { return ops::read(in, v); }));
  ops::identity(s.named("looped_r"),
                loop([&](const Scope& in) { return ops::identity(in, r); }));
  const Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
  const auto choose = [&](const char* name, const auto& value) {
    const Outputs chosen = cond(
        s, p,
        [&](const Scope& in) -> Outputs { return {twice(in, value(in))}; },
        [&](const Scope& in) -> Outputs { return {ops::constant(in, -1.0f)}; });
    ops::identity(s.named(name), chosen[0]);
  };
  choose("chosen", [&](const Scope& in) { return ops::read(in, v); });
  choose("chosen_r", [&](const Scope& in) { return ops::identity(in, r); });
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

}  // namespace

TEST_CASE("a variable that is only read is a constant until it changes") {
  const Graph graph = squares();
  for (const SessionOptions& options : hosts()) {
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    for (const char* name : {"direct", "direct_r"}) {
      RunStats usual, frozen;
      CHECK(fetch_one(*session, name, {}, &usual) ==
            fetch_one(*session, name, {}, &usual));
      for (int i = 0; i < kEnough; ++i) fetch_one(*session, name);
      fetch_one(*session, name, {}, &frozen);
      if (options.passes.has(Pass::kFreeze) && options.passes.has(Pass::kFold))
        CHECK(frozen.fired < usual.fired);
    }
  }
}

TEST_CASE("a frozen run sees every change that was made before it") {
  const Graph graph = squares();
  for (const SessionOptions& options : hosts()) {
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    for (int changes = 0; changes < 8; ++changes) {
      const float v = float(changes + 1);
      for (int i = 0; i < kEnough * (changes % 3); ++i)
        for (const char* name :
             {"direct", "direct_r", "looped", "looped_r", "chosen", "chosen_r"})
          for (const bool p : {true, false}) {
            const bool is_chosen = std::string_view(name).starts_with("ch");
            const float expected = is_chosen && !p ? -1 : 2 * v * v;
            std::vector<Feed> feeds;
            if (is_chosen) feeds.push_back({"p", Tensor::scalar(p)});
            const float value = fetch_one(*session, name, feeds);
            if (value == expected) continue;
            INFO(name << ", change " << changes << ", run " << i);
            REQUIRE(value == expected);
          }
      run_targets(*session, {"add"});
    }
  }
}

TEST_CASE("a reset and a first assignment change a variable, too") {
  const Graph graph = squares();
  const auto session = make_session({}, graph);
  const auto status = [&] {
    return session->run({}, {"direct"}, {}, within_a_minute()).status().code();
  };
  for (int i = 0; i < kEnough; ++i)
    CHECK(status() == Code::kFailedPrecondition);
  for (int round = 0; round < 3; ++round) {
    run_targets(*session, {"init"});
    for (int i = 0; i < 4 * kEnough; ++i)
      REQUIRE(fetch_one(*session, "direct") == 2);
    must(session->reset({""}));
    CHECK(status() == Code::kFailedPrecondition);
  }
}

TEST_CASE("a run that waits reads what was written before the wait ended") {
  Graph graph;
  const Scope s(graph);
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kFloat, PartialShape::scalar());
  const std::vector<DataType> types = {DataType::kFloat};
  const Output queue = s.named("queue").op(
      "FIFOQueueV2", {}, {{"component_types", types}, {"capacity", 10}});
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {});
  const Output assigned = ops::assign(s, v, x);
  s.named("put")
      .with_control_dependencies({assigned})
      .op("QueueEnqueueV2", {queue, x});
  const Output taken = s.named("taken").op("QueueDequeueV2", {queue},
                                           {{"component_types", types}});
  ops::identity(s.named("read"),
                ops::read(s.with_control_dependencies({taken}), v));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  const auto session = make_session({}, graph);
  const auto put = [&](float value) {
    must(session->run({{"x", Tensor::scalar(value)}}, {}, {"put"},
                      within_a_minute()));
  };
  for (int i = 0; i < 3 * kEnough; ++i) {
    std::atomic<float> read{-1};
    std::thread reader([&] { read = fetch_one(*session, "read"); });
    put(float(i));
    reader.join();
    REQUIRE(read == float(i));
  }
}

TEST_CASE("readers beside a writer never see an older version again") {
  const Graph graph = squares();
  for (const int workers : {1, 2}) {
    SessionOptions options;
    options.workers = workers;
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    std::atomic<bool> is_done{false};
    std::atomic<int> faults{0};
    std::atomic<int> written{1};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i)
      readers.emplace_back([&] {
        float last = 0;
        while (!is_done) {
          const auto least = float(written.load());
          const float now = fetch_one(*session, "direct");
          if (now < last || now < 2 * least * least) ++faults;
          last = now;
        }
      });
    for (int i = 0; i < 200; ++i) {
      run_targets(*session, {"add"});
      ++written;
      // Sometimes there is time to freeze.
      if (i % 50 == 0)
        for (int k = 0; k < 100; ++k) fetch_one(*session, "direct");
    }
    is_done = true;
    for (std::thread& reader : readers) reader.join();
    CHECK(faults == 0);
  }
}

TEST_CASE("a frozen form that was hardly used is not made again at once") {
  const Graph graph = squares();
  const auto session = make_session({}, graph);
  run_targets(*session, {"init"});
  // A form is due after four runs, and then eight, ...
  const auto runs_until_frozen = [&] {
    RunStats usual;
    fetch_one(*session, "direct", {}, &usual);
    for (int runs = 1; runs < 10'000; ++runs) {
      RunStats stats;
      fetch_one(*session, "direct", {}, &stats);
      if (stats.fired < usual.fired) return runs;
    }
    return 0;
  };
  int last = 0;
  for (int round = 0; round < 5; ++round) {
    const int runs = runs_until_frozen();
    CHECK(runs > last);
    last = runs;
    run_targets(*session, {"add"});
  }
}

TEST_CASE("a loop that waits for a variable to change sees it change") {
  Graph graph;
  const Scope s(graph);
  const ops::Variable stop =
      ops::variable(s.named("stop"), DataType::kBool, PartialShape::scalar());
  ops::assign(s.named("begin"), stop, false);
  ops::assign(s.named("end"), stop, true);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const auto now = [&](const Scope& in, const Output& i) {
    return ops::read(in.with_control_dependencies({i}), stop);
  };
  const Outputs by_value = while_loop(
      s,
      [&](const Scope& in, const Outputs& i) {
        return ops::logical_and(in, ops::less(in, i[0], n),
                                ops::logical_not(in, now(in, i[0])));
      },
      [&](const Scope& in, const Outputs& i) -> Outputs {
        return {ops::add(in, i[0], 1)};
      },
      {0});
  ops::identity(s.named("by_value"), by_value[0]);
  // What is read only chooses which constant is looked at.
  const Outputs by_branch = while_loop(
      s,
      [&](const Scope& in, const Outputs& i) {
        return ops::logical_and(in, ops::less(in, i[0], n), i[1]);
      },
      [&](const Scope& in, const Outputs& i) -> Outputs {
        const Outputs goes_on = cond(
            in, now(in, i[0]),
            [](const Scope& branch) -> Outputs {
              return {ops::constant(branch, false)};
            },
            [](const Scope& branch) -> Outputs {
              return {ops::constant(branch, true)};
            });
        return {ops::add(in, i[0], 1), goes_on[0]};
      },
      {0, true});
  ops::identity(s.named("by_branch"), by_branch[0]);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  for (const char* trips : {"by_value", "by_branch"}) {
    CAPTURE(trips);
    const auto session = make_session({}, graph);
    run_targets(*session, {"begin"});
    const auto run = [&](int most) {
      return must(
          must_run(*session, {{"n", Tensor::scalar<int32_t>(most)}}, {trips})[0]
              .item<int32_t>());
    };
    for (int i = 0; i < 3 * kEnough; ++i) CHECK(run(5) == 5);
    constexpr int kForEver = std::numeric_limits<int32_t>::max();
    std::atomic<int> last{0};
    std::thread waiting([&] { last = run(kForEver); });
    while (session->counters().active == 0) std::this_thread::yield();
    run_targets(*session, {"end"});
    waiting.join();
    CHECK(last < kForEver);
  }
}

TEST_CASE("a read that the end of an iteration only waits for is frozen") {
  Graph graph;
  const Scope s(graph);
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kFloat, PartialShape::scalar());
  ops::assign(s.named("init"), v, 2.0f);
  const Outputs power = while_loop(
      s,
      [&](const Scope& in, const Outputs& x) { return ops::less(in, x[0], 3); },
      [&](const Scope& in, const Outputs& x) -> Outputs {
        const Output now = ops::read(in.named("read"), v);
        const Scope after = in.with_control_dependencies({now});
        return {ops::add(after, x[0], 1), ops::mul(in, x[1], now)};
      },
      {0, 1.0f});
  ops::identity(s.named("power"), power[1]);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : hosts()) {
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    for (int i = 0; i < kEnough; ++i) CHECK(fetch_one(*session, "power") == 8);
  }
  const auto session = make_session({}, graph);
  run_targets(*session, {"init"});
  const auto is_read = [](const Node* node) { return reads_variable(*node); };
  const Endpoint fetch = must(graph.endpoint("power"));
  Program program = must(extract(graph, {}, {&fetch, 1}, {}));
  CHECK(std::ranges::any_of(program.graph.nodes(), is_read));
  must(freeze_variables(program, session->shared_state()->resources()));
  CHECK(std::ranges::none_of(program.graph.nodes(), is_read));
}

TEST_CASE("a read after something that sees other runs is not frozen") {
  Graph graph;
  const Scope s(graph);
  const auto variable = [&](const char* name) {
    return ops::variable(s.named(name), DataType::kFloat, PartialShape({2}));
  };
  const ops::Variable a = variable("a");
  const ops::Variable rows = variable("rows");
  const std::vector<Output> set = {
      ops::assign(s.named("set_a"), a, {1.0f, 2.0f}),
      ops::assign(s.named("set_rows"), rows, {1.0f, 2.0f})};
  s.named("change_row")
      .op("ResourceScatterAdd",
          {rows.handle, 0, s.constant(Tensor::scalar(1.0f))},
          {{"dtype", DataType::kFloat}});
  const Output before = ops::read(s.named("before"), a);
  const Output whole = ops::read(s.named("whole"), rows);
  const Output after =
      ops::read(s.with_control_dependencies({whole}).named("after"), a);
  ops::identity(s.named("all"), ops::add(s, ops::add(s, before, whole), after));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  const auto session = make_session({}, graph);
  run_targets(*session, {"set_a", "set_rows"});
  const auto frozen = [&](const char* read) {
    const Endpoint fetch = must(graph.endpoint("all"));
    Program program = must(extract(graph, {}, {&fetch, 1}, {}));
    CHECK_FALSE(
        must(freeze_variables(program, session->shared_state()->resources()))
            .empty());
    return program.graph.find(read) == nullptr;
  };
  for (const char* read : {"before", "whole", "after"}) CHECK(frozen(read));
  // From now on it is read by copy, and so not frozen.
  run_targets(*session, {"change_row"});
  CHECK(frozen("before"));
  CHECK_FALSE(frozen("whole"));
  CHECK_FALSE(frozen("after"));
}

TEST_CASE("a node that asks for another variable is refused in every run") {
  Graph graph;
  const Scope s(graph);
  const auto variable = [&](const char* name, const PartialShape& shape) {
    return ops::variable(s.named(name), DataType::kFloat, shape,
                         {.shared_name = "v"});
  };
  ops::assign(s.named("init"), variable("v", PartialShape({2})), {1.0f, 2.0f});
  ops::identity(
      s.named("other"),
      ops::reduce_sum(s, ops::read(s, variable("w", PartialShape({3}))), {0}));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  const auto session = make_session({}, graph);
  run_targets(*session, {"init"});
  for (int i = 0; i < 2 * kEnough; ++i)
    CHECK_FALSE(session->run({}, {"other"}, {}, within_a_minute()).ok());
}
