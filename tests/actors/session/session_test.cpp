// Runs of small graphs, in every configuration of the engine.
#include "actors/session/session.h"

#include <doctest/doctest.h>

#include <future>
#include <thread>

#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_op.h"
#include "tests/graph/hand_made_functions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// The loop of the specification's worked example.
Outputs fibonacci(const Scope& s, const Input& limit) {
  return while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        return ops::less(in, v[2], limit);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {v[1], ops::add(in, v[0], v[1]), ops::add(in, v[2], 1)};
      },
      {1, 1, 1});
}

}  // namespace

TEST_CASE("smoke: a constant comes back as it is") {
  Graph graph;
  Scope s(graph);
  s.constant(Tensor::scalar(3.5f), "c");
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    CHECK(must_run(*session, {}, {"c:0"})[0].scalar_value<float>() == 3.5f);
  }
}

TEST_CASE("a graph's oddity is warned of once, and the graph runs") {
  Graph graph;
  Scope s(graph);
  s.constant(Tensor::scalar(2), "value");
  std::vector<NodeDef> nodes;
  for (const auto& [name, window] : {std::pair("a", 4), std::pair("b", 2)}) {
    const std::string enter = name;
    nodes.push_back({enter,
                     "Enter",
                     {"value"},
                     "",
                     {{"T", DataType::kInt32},
                      {"frame_name", "loop"},
                      {"parallel_iterations", window}}});
    nodes.push_back(
        {"out_" + enter, "Exit", {enter}, "", {{"T", DataType::kInt32}}});
  }
  REQUIRE(graph.extend(nodes).ok());
  std::vector<std::string> told;
  SessionOptions options;
  options.on_warning = [&](const std::string& text) { told.push_back(text); };
  auto session = make_session(options, graph);
  CHECK(must_run(*session, {}, {"out_a"})[0].scalar_value<int32_t>() == 2);
  CHECK(must_run(*session, {}, {"out_b"})[0].scalar_value<int32_t>() == 2);
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("\"b\"") != std::string::npos);
}

TEST_CASE("a node of more inputs than a plan can hold is refused") {
  Graph graph;
  Scope s(graph);
  s.constant(Tensor::scalar(2), "value");
  const std::vector<std::string> inputs(70'000, "value");
  REQUIRE(graph
              .extend(std::vector<NodeDef>{
                  {"sum", "AddN", inputs, "", {{"N", int64_t(70'000)}}}})
              .ok());
  SessionOptions options;
  options.passes = PassSet::none();  // which would compute it now
  auto session = make_session(options, graph);
  const auto result = session->run({}, {"sum"});
  CHECK(result.status().code() == Code::kResourceExhausted);
  CHECK(result.status().message().find("70000 inputs") != std::string::npos);
}

TEST_CASE("a dead fetch names its Switch across a long chain") {
  Graph graph;
  Scope s(graph);
  s.constant(Tensor::scalar(2), "value");
  s.constant(Tensor::scalar(false), "p");
  std::vector<NodeDef> nodes{{"switch", "Switch", {"value", "p"}, "", {}}};
  std::string last = "switch:1";
  for (int i = 0; i < 50'000; ++i) {
    nodes.push_back({fmt::format("n{}", i), "Identity", {last}, "", {}});
    last = nodes.back().name;
  }
  REQUIRE(graph.extend(nodes).ok());
  SessionOptions options;
  options.passes = PassSet::none();
  auto session = make_session(options, graph);
  const auto result = session->run({}, {last});
  CHECK(result.status().code() == Code::kInvalidArgument);
  CHECK(result.status().message().find("Switch \"switch\"") !=
        std::string::npos);
}

TEST_CASE("time-outs: for ever is possible, a negative one is refused") {
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32);
  ops::add(s.named("y"), x, 1);
  auto session = make_session({}, graph);
  RunOptions options;
  options.timeout = std::chrono::nanoseconds::max();
  CHECK(session->run({{"x", Tensor::scalar(2)}}, {"y"}, {}, options).ok());
  options.timeout = std::chrono::nanoseconds(-1);
  CHECK(session->run({{"x", Tensor::scalar(2)}}, {"y"}, {}, options)
            .status()
            .code() == Code::kInvalidArgument);
}

TEST_CASE("smoke: a chain of ops is computed") {
  Graph graph;
  Scope s(graph);
  Output x = ops::placeholder(s.named("x"), DataType::kFloat, {});
  Output y = x;
  for (int i = 0; i < 5; ++i) y = ops::add(s, ops::mul(s, y, 2.f), 1.f);
  ops::identity(s.named("y"), y);
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    auto out = must_run(*session, {{"x", Tensor::scalar(1.f)}}, {"y", "x"});
    CHECK(out[0].scalar_value<float>() == 63.f);
    CHECK(out[1].scalar_value<float>() == 1.f);
  }
}

TEST_CASE("smoke: the worked example of the specification gives 1, 2, 2") {
  Graph graph;
  Scope s(graph);
  const Outputs r = fibonacci(s, 2);
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    RunStats stats;
    auto out =
        must_run(*session, {}, {r[0].name(), r[1].name(), r[2].name()}, &stats);
    CHECK(out[0].scalar_value<int32_t>() == 1);
    CHECK(out[1].scalar_value<int32_t>() == 2);
    CHECK(out[2].scalar_value<int32_t>() == 2);
    CHECK(stats.frames == 1);
    CHECK(stats.iterations == 3);  // of the loop two, of the root frame one
  }
}

TEST_CASE("smoke: a long loop runs in every configuration and window") {
  Graph graph;
  Scope s(graph);
  Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Outputs r = fibonacci(s, n);
  REQUIRE(s.status().ok());
  for (SessionOptions options : configurations()) {
    for (int window : {1, 2, 8, 32}) {
      options.window = window;
      auto session = make_session(options, graph);
      for (int trips : {0, 1, 2, 3, 1000}) {
        auto out = must_run(*session, {{"n", Tensor::scalar(1 + trips)}},
                            {r[2].name()});
        CHECK(out[0].scalar_value<int32_t>() == 1 + trips);
      }
    }
  }
}

TEST_CASE("smoke: nested loops with a conditional inside") {
  Graph graph;
  Scope s(graph);
  Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Outputs r = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Outputs inner = while_loop(
            in,
            [&](const Scope& t, const Outputs& w) {
              return ops::less(t, w[0], n);
            },
            [&](const Scope& t, const Outputs& w) -> Outputs {
              const Output even = ops::equal(t, ops::floor_mod(t, w[0], 2), 0);
              const Outputs sum = cond(
                  t, even,
                  [&](const Scope& b) -> Outputs {
                    return {ops::add(b, w[1], v[0])};
                  },
                  [&](const Scope& b) -> Outputs {
                    return {ops::sub(b, w[1], 1)};
                  });
              return {ops::add(t, w[0], 1), sum[0]};
            },
            {0, v[1]});
        return {ops::add(in, v[0], 1), inner[1]};
      },
      {0, 0});
  REQUIRE(s.status().ok());
  for (SessionOptions options : configurations()) {
    for (int window : {1, 2, 32}) {
      options.window = window;
      auto session = make_session(options, graph);
      for (int trips : {0, 1, 5, 20}) {
        int expected = 0;
        for (int i = 0; i < trips; ++i)
          for (int j = 0; j < trips; ++j) expected += j % 2 == 0 ? i : -1;
        auto out =
            must_run(*session, {{"n", Tensor::scalar(trips)}}, {r[1].name()});
        CHECK(out[0].scalar_value<int32_t>() == expected);
      }
    }
  }
}

TEST_CASE("smoke: a fetched dead tensor names the Switch and its predicate") {
  Graph graph;
  Scope s(graph);
  Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
  const OpResult sw = s.named("sw").op("Switch", {3.f, p});
  ops::neg(s.named("dead"), sw[1]);
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    auto out = session->run({{"p", Tensor::scalar(false)}}, {"dead:0"});
    REQUIRE(!out.ok());
    CHECK(out.status().code() == Code::kInvalidArgument);
    const std::string text(out.status().message());
    CHECK(text.find("Switch \"sw\"") != std::string::npos);
    CHECK(text.find("was false") != std::string::npos);
    // And the session goes on.
    CHECK(must_run(*session, {{"p", Tensor::scalar(true)}}, {"dead:0"})[0]
              .scalar_value<float>() == -3.f);
  }
}

TEST_CASE("smoke: an endless loop ends with its time-out") {
  Graph graph;
  Scope s(graph);
  const Outputs r = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, ops::mul(in, v[0], 0), 1);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1)};
      },
      {0});
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    RunOptions run;
    run.timeout = std::chrono::milliseconds(20);
    auto out = session->run({}, {r[0].name()}, {}, run);
    REQUIRE(!out.ok());
    CHECK(out.status().code() == Code::kDeadlineExceeded);
  }
}

namespace {

// Believed to be cheap, it runs on the thread that calls Session::run().
class EndlessKernel final : public devices::CheapKernel {
 public:
  explicit EndlessKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    for (;; std::this_thread::yield()) context.check_cancelled();
  }
};

}  // namespace

TEST_CASE("a time-out ends a kernel on the thread that called run()") {
  add_test_op<EndlessKernel>("TestEndless");
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("y"),
                s.op("TestEndless", {s.constant(Tensor::scalar(3))}));
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    RunOptions run;
    run.timeout = std::chrono::milliseconds(1);
    CHECK(session->run({}, {"y"}, {}, run).status().code() ==
          Code::kDeadlineExceeded);
  }
}

TEST_CASE("a time-out says which loops ran, and how far they had come") {
  Graph graph;
  Scope s(graph);
  const Outputs outer = while_loop(
      s.named("outer"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 9); },
      [](const Scope& body, const Outputs& v) -> Outputs {
        return while_loop(
            body.named("inner"),
            // Endless when the outer loop has come to iteration 3.
            [&](const Scope& in, const Outputs& w) {
              return ops::logical_or(in, ops::equal(in, v[0], 3),
                                     ops::less_equal(in, w[0], v[0]));
            },
            [](const Scope& in, const Outputs& w) -> Outputs {
              return {ops::add(in, w[0], 1)};
            },
            {v[0]});
      },
      {0});
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    RunOptions run;
    run.timeout = std::chrono::milliseconds(50);
    for (const bool async : {false, true}) {
      CAPTURE(async);
      const auto late = [&] {
        if (!async)
          return session->run({}, {outer[0].name()}, {}, run).status();
        std::promise<Status> answer;
        session->run_async(
            {}, {outer[0].name()}, {}, run,
            [&](auto result, RunStats) { answer.set_value(result.status()); });
        return answer.get_future().get();
      };
      std::string text;
      // A machine under load may not begin in time, nor come to rest within the
      // grace.
      for (int i = 0; i < 100 && text.find("inner/") == text.npos; ++i) {
        const Status status = late();
        REQUIRE(status.code() == Code::kDeadlineExceeded);
        text = status.message();
      }
      CAPTURE(text);
      CHECK(text.find("outer/while_context\" had come to iteration 3") !=
            std::string::npos);
      CHECK(text.find("inner/while_context\" had come to iteration ") !=
            std::string::npos);
      CHECK(text.find("frame \"outer/while_context/3/") != std::string::npos);
    }
  }
}

TEST_CASE("smoke: cancellation ends an endless loop") {
  Graph graph;
  Scope s(graph);
  const Outputs r = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, ops::mul(in, v[0], 0), 1);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1)};
      },
      {0});
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    RunOptions run;
    run.cancel.emplace();
    std::thread canceller([token = *run.cancel]() mutable { token.cancel(); });
    auto out = session->run({}, {r[0].name()}, {}, run);
    canceller.join();
    REQUIRE(!out.ok());
    CHECK(out.status().code() == Code::kCancelled);
  }
}

TEST_CASE("a dead loop after a dead loop blames the Switch before both") {
  Graph graph;
  Scope s(graph);
  const Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
  const auto loop = [&](const Scope& in, const Output& from) {
    return while_loop(
        in,
        [](const Scope& c, const Outputs& v) { return ops::less(c, v[0], 3); },
        [](const Scope& b, const Outputs& v) -> Outputs {
          return {ops::add(b, v[0], 1)};
        },
        {from})[0];
  };
  const Output guarded = s.named("sw").op("Switch", {0, p})[1];
  const Output last = loop(s.named("b"), loop(s.named("a"), guarded));
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    CHECK(must_run(*session, {{"p", Tensor::scalar(true)}}, {last.name()})[0]
              .item<int32_t>()
              .value() == 3);
    const auto out =
        session->run({{"p", Tensor::scalar(false)}}, {last.name()});
    const std::string text(out.status().message());
    CAPTURE(text);
    CHECK(text.find("Switch \"sw\"") != std::string::npos);
  }
}

TEST_CASE("a run keeps nothing that it was fed") {
  Graph graph;
  Scope s(graph);
  const Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {100});
  // To a port that leads nowhere, to control edges alone, to a Merge that has
  // its value already, and into a loop as a constant.
  s.named("nowhere").op("Switch", {x, p});
  const Output only_control = ops::identity(s.named("only_control"), x);
  s.named("after").with_control_dependencies({only_control}).op("NoOp", {});
  s.named("merge").op("Merge", {ops::identity(s, x), ops::neg(s, x)});
  const Output summed = while_loop(
      s.named("loop"),
      [](const Scope& c, const Outputs& v) { return ops::less(c, v[0], 3); },
      [&](const Scope& b, const Outputs& v) -> Outputs {
        return {ops::add(b, v[0], 1), ops::add(b, v[1], x)};
      },
      {0, x})[1];
  REQUIRE(s.status().ok());
  const std::vector<float> twos(100, 2.f);
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    for (const bool value : {false, true}) {
      const Tensor fed = Tensor::of<float>({100}, std::span<const float>(twos));
      CAPTURE(value);
      {
        const auto out = session->run(
            {{"p", Tensor::scalar(value)}, {"x", fed}}, {summed.name()},
            {"nowhere", "only_control", "after", "merge"});
        REQUIRE(out.ok());
        CHECK((*out)[0].flat<float>()[99] == 8.f);
      }
      CHECK(fed.unique());
    }
  }
}

TEST_CASE("an iteration may have any number of nodes, ready at once or not") {
  for (int count = 1; count <= 18; ++count) {
    Graph graph;
    Scope s(graph);
    const Output x = ops::placeholder(s.named("x"), DataType::kInt32, {});
    std::vector<std::string> fetches;
    Output chain = x;
    for (int i = 0; i < count; ++i) {
      chain = ops::add(s, chain, 1);
      fetches.push_back(chain.name());
      fetches.push_back(ops::add(s, s.constant(Tensor::scalar(i)), 1).name());
    }
    REQUIRE(s.status().ok());
    for (const SessionOptions& options : configurations()) {
      auto session = make_session(options, graph);
      const auto out = must_run(*session, {{"x", Tensor::scalar(5)}}, fetches);
      for (int i = 0; i < count; ++i) {
        CHECK(out[size_t(2 * i)].item<int32_t>().value() == 6 + i);
        CHECK(out[size_t(2 * i + 1)].item<int32_t>().value() == 1 + i);
      }
    }
  }
}

TEST_CASE("signatures that differ in their targets alone are two") {
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32, {});
  ops::neg(s.named("y"), x);
  ops::assert_(s.named("small"), ops::less(s, x, 5), {"x is", x});
  ops::assert_(s.named("large"), ops::less(s, 7, x), {"x is", x});
  REQUIRE(s.ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    const auto fails = [&](const std::vector<std::string>& targets) {
      const auto out = session->run({{"x", Tensor::scalar(6)}}, {"y"}, targets);
      if (out.ok()) return std::string();
      const std::string text(out.status().message());
      const size_t at = text.find("(node \"");
      REQUIRE(at != std::string::npos);
      return text.substr(at + 7, 5);
    };
    for (int i = 0; i < 2; ++i) {
      CHECK(fails({}).empty());
      CHECK(fails({"small"}) == "small");
      CHECK(fails({"large"}) == "large");
      CHECK(fails({"y"}).empty());
      CHECK_FALSE(fails({"small", "large"}).empty());
    }
  }
}

TEST_CASE("signatures tell feeds, fetches and targets apart") {
  Graph graph;
  Scope s(graph);
  const Output a = ops::placeholder(s.named("a"), DataType::kInt32, {});
  const Output b = ops::neg(s.named("b"), a);
  ops::neg(s.named("c"), b);
  REQUIRE(s.ok());
  auto session = make_session({}, graph);
  const auto run = [&](const char* feed, const char* fetch) {
    return must_run(*session, {{feed, Tensor::scalar(5)}}, {fetch})[0]
        .scalar_value<int32_t>();
  };
  for (int i = 0; i < 2; ++i) {
    CHECK(run("a", "b") == -5);
    CHECK(run("a", "c") == 5);
    CHECK(run("b", "c") == -5);
    CHECK(session->run({{"a", Tensor::scalar(5)}}, {}, {"c"})->empty());
  }
}

// "again" adds 1 in the session's own library, 10 in what is refused.
TEST_CASE("an extension that is refused leaves no function behind") {
  const auto adds = [](const std::string& name, int number) {
    return function(name, {"n: int32"}, {"r: int32"},
                    {body_const("number", Tensor::scalar(number)),
                     body_int("sum", "Add", "n", "number:output:0")},
                    {{"r", "sum:z:0"}});
  };
  const auto graph_of = [](const std::vector<FunctionDef>& functions,
                           const std::vector<NodeDef>& nodes) {
    Graph graph;
    for (const FunctionDef& each : functions)
      REQUIRE(graph.library().add(each).ok());
    graph::testing::must(graph.extend(nodes));
    return graph;
  };
  const NodeDef x =
      body_node("x", "Placeholder", {}, {{"dtype", DataType::kInt32}});
  const NodeDef other =
      body_node("z", "Placeholder", {}, {{"dtype", DataType::kInt32}});
  auto session = graph::testing::must(Session::create({}));
  graph::testing::must(session->extend(
      graph_of({adds("one", 1)}, {x, body_node("y", "one", {"x"})})));
  // Its node "x" is there already.
  const Status twice = session->extend(graph_of(
      {adds("two", 10), adds("three", 3)}, {x, body_node("w", "two", {"x"})}));
  CHECK(twice.code() == Code::kAlreadyExists);
  // Of another "one", though "two" comes with it.
  const Status conflict =
      session->extend(graph_of({adds("one", 2), adds("two", 10)},
                               {other, body_node("v", "two", {"z"})}));
  CHECK_FALSE(conflict.ok());
  CHECK(session->graph().library().size() == 1);
  CHECK(session->graph().find("w") == nullptr);
  CHECK(session->graph().find("z") == nullptr);
  graph::testing::must(session->extend(
      graph_of({adds("two", 2)}, {other, body_node("v", "two", {"z"})})));
  CHECK(must_run(*session, {{"z", Tensor::scalar(5)}}, {"v"})[0]
            .scalar_value<int32_t>() == 7);
  CHECK(must_run(*session, {{"x", Tensor::scalar(5)}}, {"y"})[0]
            .scalar_value<int32_t>() == 6);
}
