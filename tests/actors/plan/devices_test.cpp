// Sessions of several devices: a cut graph gives the same results as the whole
// one, and an error on one device ends the step on all.
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>

#include "actors/plan/distribute.h"
#include "actors/runtime/engine.h"
#include "devices/device.h"
#include "graph/builder/builder.h"
#include "graph/passes/passes.h"
#include "tests/actors/engine_check.h"
#include "tests/actors/sessions.h"
#include "tests/reference/odd_loops.h"
#include "tests/repeats.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;  // NOLINT: the builder's vocabulary
using graph::testing::must;

namespace {

SessionOptions on(std::string devices) {
  SessionOptions options;
  options.devices = std::move(devices);
  options.timeout = std::chrono::seconds(60);
  return options;
}

// while i < n: i += 1, a = f(a), with the sum on CPU:1.
Outputs count_over_two(const Scope& s, const Output& n,
                       const std::string& there = "/cpu:1") {
  const Scope here = s.with_device("/cpu:0");
  return while_loop(
      here,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                ops::add(in.with_device(there), v[1], 2)};
      },
      {0, 5}, {.parallel_iterations = 8});
}

Output trips(const Scope& s) {
  return ops::placeholder(s.named("n"), DataType::kInt32,
                          PartialShape::scalar());
}

std::string error_of(const std::string& devices) {
  return Session::create(on(devices)).status().to_string();
}

}  // namespace

TEST_CASE("smoke: a loop over two devices makes no, one and many trips") {
  Graph graph;
  const Scope s(graph);
  const Outputs last = count_over_two(s, trips(s));
  must(s.status());
  for (SessionOptions options : configurations())
    for (const char* devices : {"cpu:2", "cpu:2,stream:1"}) {
      options.devices = devices;
      INFO(describe(options));
      auto session = make_session(options, graph);
      for (const int n : {0, 1, 2, 50}) {
        const auto out = must_run(*session, {{"n", Tensor::scalar(n)}},
                                  {last[0].name(), last[1].name()});
        CHECK(out[0].scalar_value<int>() == n);
        CHECK(out[1].scalar_value<int>() == 5 + 2 * n);
      }
    }
}

TEST_CASE("smoke: an op of a loop runs on an accelerator") {
  Graph graph;
  const Scope s(graph);
  const Outputs last = count_over_two(s, trips(s), "/device:STREAM:0");
  must(s.status());
  for (SessionOptions options : configurations()) {
    options.devices = "cpu:1,stream:1";
    INFO(describe(options));
    auto session = make_session(options, graph);
    const auto out =
        must_run(*session, {{"n", Tensor::scalar(30)}}, {last[1].name()});
    CHECK(out[0].scalar_value<int>() == 65);
  }
}

TEST_CASE("tensors go to an accelerator, stay there, and come back") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {100});
  const Scope there = s.with_device("/device:STREAM:0");
  // A predicate that is computed from what is in the device's memory.
  const Outputs last = while_loop(
      there,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, ops::reduce_sum(in, v[0]), 1000.0f);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return ops::add(in, v[0], ops::square(in, v[0]));
      },
      {x});
  const Output sum = ops::reduce_sum(s.with_device("/cpu:0"), last[0]);
  must(s.status());
  const std::vector<float> halves(100, 0.5f);
  const Tensor feed = Tensor::of<float>({100}, std::span<const float>(halves));
  Graph plain = graph.clone();
  for (Node* node : plain.nodes()) plain.set_device(node, "");
  auto cpu = make_session(on(""), plain);
  const auto expected =
      must_run(*cpu, {{"x", feed}}, {last[0].name(), sum.name()});
  for (SessionOptions options : configurations()) {
    options.devices = "cpu:1,stream:1";
    INFO(describe(options));
    auto session = make_session(options, graph);
    const auto out =
        must_run(*session, {{"x", feed}}, {last[0].name(), sum.name()});
    CHECK(identical(out[0], expected[0]));
    CHECK(identical(out[1], expected[1]));
  }
}

TEST_CASE("constants that share a buffer keep their own shapes") {
  Graph graph;
  const Scope s(graph);
  const Scope there = s.with_device("/device:STREAM:0");
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {});
  const Output c = ops::constant(
      there, Tensor::of<float>({2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}));
  const Output a = ops::add(there, c, x);
  const Output b = ops::add(there, ops::reshape(there, c, {6, 2}), x);
  must(s.status());
  auto session = make_session(on("stream:1"), graph);
  const auto out =
      must_run(*session, {{"x", Tensor::scalar(1.0f)}}, {a.name(), b.name()});
  CHECK(out[0].shape() == Shape({2, 6}));
  CHECK(out[1].shape() == Shape({6, 2}));
}

TEST_CASE("a run that is asked for where an answer is told is refused") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {100});
  const Output y = ops::neg(s.with_device("/device:STREAM:0"), x);
  must(s.status());
  auto session = make_session(on("stream:1"), graph);
  const Tensor feed = Tensor::make(DataType::kFloat, {100});
  const std::vector<Feed> feeds = {{"x", feed}};
  std::promise<Status> inner;
  session->run_async(
      feeds, {y.name()}, {}, {},
      [&](Result<std::vector<Tensor>> out, const RunStats&) {
        must(std::move(out));
        inner.set_value(session->run(feeds, {y.name()}).status());
      });
  CHECK(inner.get_future().get().code() == Code::kFailedPrecondition);
}

TEST_CASE("answers are told on no accelerator's thread, which must not block") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {100});
  // A chain, so that what answers last is most often a device's thread.
  Output y = x;
  for (int i = 0; i < 4; ++i)
    y = ops::neg(s.with_device("/device:STREAM:0"), y);
  must(s.status());
  for (SessionOptions options : configurations()) {
    options.devices = "cpu:1,stream:1";
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    const std::vector<Feed> feeds = {
        {"x", Tensor::make(DataType::kFloat, {100})}};
    for (int i = 0; i < 20; ++i) {
      std::promise<bool> told;
      session->run_async(feeds, {y.name()}, {}, {},
                         [&](Result<std::vector<Tensor>> out, const RunStats&) {
                           must(std::move(out));
                           told.set_value(Engine::is_worker());
                         });
      REQUIRE(told.get_future().get());
    }
  }
}

TEST_CASE("launches are counted apart from kernels on lanes") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {100});
  Output y = ops::neg(s, x);
  for (int i = 0; i < 4; ++i)
    y = ops::neg(s.with_device("/device:STREAM:0"), y);
  must(s.status());
  SessionOptions options = on("cpu:1,stream:1");
  options.passes = PassSet::none();
  auto session = make_session(options, graph);
  RunStats stats;
  must_run(*session, {{"x", Tensor::make(DataType::kFloat, {100})}}, {y.name()},
           &stats);
  CHECK(stats.launched == 4);
  CHECK(stats.offloaded == 0);
}

TEST_CASE("smoke: odd loops, scattered, give the reference's results") {
  for (size_t i = 0; i < std::size(reference::kOddLoops); ++i) {
    const reference::Case c = reference::kOddLoops[i]();
    const auto expected =
        must(reference::interpret(c.graph, c.feeds, c.fetches));
    for (int index = 0; index < tagflow::testing::repeats(120); ++index) {
      const SessionOptions options = configuration(index);
      INFO("loop ", i, ", ", describe(options));
      must(check_engine(c, expected, options));
    }
  }
}

TEST_CASE("random odd loops that end on one device end on several, alike") {
  int ended = 0;
  const int count = tagflow::testing::repeats(300);
  for (int seed = 0; seed < count; ++seed) {
    const reference::Case c = reference::random_odd_loops(seed);
    const auto expected =
        must(reference::interpret(c.graph, c.feeds, c.fetches));
    SessionOptions options = configuration(seed);
    // If a value never comes, a loop may wait for it to be entered.
    options.devices = "cpu:1";
    if (!check_engine(c, expected, options).ok()) continue;
    options.devices = fmt::format("cpu:{}", 2 + seed % 4);
    INFO("seed ", seed, ", ", describe(options));
    must(check_engine(c, expected, options));
    ++ended;
  }
  CHECK(ended > count * 14 / 15);
}

TEST_CASE("a memory limit that is exceeded fails the step, not the session") {
  Graph graph;
  const Scope s(graph);
  const Output n =
      ops::placeholder(s.named("n"), DataType::kInt32, PartialShape::scalar());
  const Output filled = s.with_device("/device:CPU:0")
                            .op("Fill", {ops::reshape(s, n, {1}), 1.0f})[0];
  const Output sum = ops::reduce_sum(s, filled);
  must(s.status());
  auto session = make_session(on("cpu:1:memory=64KiB"), graph);
  for (int i = 0; i < 3; ++i) {
    const auto out =
        must_run(*session, {{"n", Tensor::scalar(1000)}}, {sum.name()});
    CHECK(out[0].scalar_value<float>() == 1000);
    const Status status =
        session->run({{"n", Tensor::scalar(100'000)}}, {sum.name()}).status();
    CAPTURE(status.to_string());
    CHECK(status.code() == Code::kResourceExhausted);
    CHECK(status.message().find("needs 400000 bytes of") != std::string::npos);
    CHECK(status.message().find("of 64 KiB, peak") != std::string::npos);
    CHECK(status.message().find("node \"Fill\"") != std::string::npos);
  }
  CHECK(session->devices()[0]->memory().in_use == 0);
}

TEST_CASE("an accelerator without enough memory fails one step alone") {
  Graph graph;
  const Scope s(graph);
  const Output n =
      ops::placeholder(s.named("n"), DataType::kInt32, PartialShape::scalar());
  const Output filled = s.with_device("/device:STREAM:0")
                            .op("Fill", {ops::reshape(s, n, {1}), 1.0f})[0];
  must(s.status());
  auto session = make_session(on("stream:1:memory=64KiB"), graph);
  for (int i = 0; i < 3; ++i) {
    CHECK(must_run(*session, {{"n", Tensor::scalar(1000)}}, {filled.name()})[0]
              .num_elements() == 1000);
    const Status status =
        session->run({{"n", Tensor::scalar(100'000)}}, {filled.name()})
            .status();
    CAPTURE(status.to_string());
    CHECK(status.code() == Code::kResourceExhausted);
    CHECK(status.message().find("device:STREAM:0 (") != std::string::npos);
  }
  CHECK(session->devices()[1]->memory().in_use == 0);
}

TEST_CASE("a kernel that fails in a loop ends the step on all devices") {
  // 12 / (3 - i) fails in iteration 3, with int32 division.
  for (const char* there : {"/cpu:1", "/device:STREAM:0"}) {
    Graph graph;
    const Scope s(graph);
    const Output n = trips(s);
    const Scope here = s.with_device("/cpu:0");
    const Outputs last = while_loop(
        here,
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], n);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Scope far = in.with_device(there);
          const Output bad = ops::floor_div(far, 12, ops::sub(far, 3, v[0]));
          return {ops::add(in, v[0], 1), ops::add(in, v[1], bad),
                  ops::add(in.with_device("/cpu:2"), v[2], 1)};
        },
        {0, 0, 0}, {.parallel_iterations = 16});
    must(s.status());
    for (SessionOptions options : configurations()) {
      options.devices = "cpu:3,stream:1";
      INFO(describe(options), ", on ", there);
      auto session = make_session(options, graph);
      for (int i = 0; i < 2; ++i) {
        const Status status =
            session
                ->run({{"n", Tensor::scalar(1000)}}, {last[2].name()},
                      {last[1].node()->name()}, within_a_minute())
                .status();
        CAPTURE(status.to_string());
        CHECK(status.code() == Code::kInvalidArgument);
        CHECK(status.message().find("iteration \"while/while_context/3\"") !=
              std::string::npos);
        const auto out =
            must_run(*session, {{"n", Tensor::scalar(2)}}, {last[1].name()});
        CHECK(out[0].scalar_value<int>() == 4 + 6);
      }
    }
  }
}

TEST_CASE("Recv scheduling keeps an accelerator's peak memory down") {
  // On the accelerator, a long chain that reads a tensor of the host now and
  // then: these need not be there at once.
  constexpr int kTensors = 8;
  constexpr int64_t kBytes = 1 << 20;
  Graph graph;
  const Scope s(graph);
  const Scope there = s.with_device("/device:STREAM:0");
  const PartialShape shape({kBytes / 4});
  std::vector<Feed> feeds;
  Output y;
  for (int i = 0; i < kTensors; ++i) {
    const std::string name = fmt::format("x{}", i);
    const Output x = ops::placeholder(s.named(name), DataType::kFloat, shape);
    feeds.emplace_back(name, Tensor::make(DataType::kFloat, {kBytes / 4}));
    std::ranges::fill(feeds.back().second.mutable_flat<float>(), 0.5f);
    y = i == 0 ? ops::identity(there, x) : ops::add(there, y, x);
    for (int k = 0; k < 6; ++k) y = ops::neg(there, y);
  }
  const Output sum = ops::reduce_sum(there, y);
  must(s.status());
  const auto peak = [&](bool schedule) {
    SessionOptions options = on("stream:1:memory=64MiB");
    options.passes = graph::PassSet::only(graph::Pass::kInplace);
    options.schedule_receives = schedule;
    auto session = make_session(options, graph);
    const auto out = must_run(*session, feeds, {sum.name()});
    CHECK(out[0].scalar_value<float>() == kTensors * 0.5f * (kBytes / 4));
    return session->devices()[1]->memory().peak;
  };
  // What is computed, what is read, and what comes next.
  CHECK(peak(true) <= 4 * kBytes);
  CHECK(peak(true) <= peak(false));
}

TEST_CASE("sessions refuse devices that there are not") {
  CHECK(error_of("cpu:0").find("cpu") != std::string::npos);
  CHECK(error_of("abacus:1").find("abacus") != std::string::npos);
  CHECK(error_of("cpu:1:memory=-3").find("memory") != std::string::npos);
  CHECK(error_of("cpu:2") == Status().to_string());
}

TEST_CASE(
    "constraints that cannot be met are refused, or give way on request") {
  Graph graph;
  const Scope s(graph);
  const Output two = ops::placeholder(s.named("two"), DataType::kFloat, {});
  const Output x = ops::neg(s.with_device("/device:GPU:7").named("x"), two);
  const std::vector<Feed> feeds = {{"two", Tensor::scalar(2.0f)}};
  must(s.status());
  SessionOptions options = on("cpu:2");
  const Status status =
      make_session(options, graph)->run(feeds, {x.name()}).status();
  CAPTURE(status.to_string());
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message().find("node \"x\" asks for \"/device:GPU:7\"") !=
        std::string::npos);
  std::string warned;
  options.soft_placement = true;
  options.on_warning = [&](const std::string& text) { warned += text; };
  const auto out = must_run(*make_session(options, graph), feeds, {x.name()});
  CHECK(out[0].scalar_value<float>() == -2);
  CHECK(warned.find("\"x\"") != std::string::npos);
}

TEST_CASE("a session may be made, run and ended on threads that live on") {
  Graph graph;
  const Scope s(graph);
  const Outputs last = count_over_two(s, trips(s));
  must(s.status());
  std::atomic<bool> over = false;
  std::unique_ptr<Session> session;
  const auto stay = [&] {
    while (!over) std::this_thread::yield();
  };
  std::atomic<int> stage = 0;
  std::thread maker([&] {
    session = make_session(on("cpu:2"), graph);
    stage = 1;
    stay();
  });
  std::thread runner([&] {
    while (stage != 1) std::this_thread::yield();
    must_run(*session, {{"n", Tensor::scalar(10)}}, {last[1].name()});
    stage = 2;
    stay();
  });
  while (stage != 2) std::this_thread::yield();
  session.reset();
  over = true;
  maker.join();
  runner.join();
}

TEST_CASE("device constraints that contradict are refused with any passes") {
  Graph graph;
  const Scope s(graph);
  const auto node = [&](const std::string& name, const std::string& device) {
    return s.with_device(device).named(name);
  };
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {});
  // Folded, taken out, and never taken.
  const Output a = ops::add(node("a", "/cpu:0"), 1.0f, 2.0f);
  const Output b = ops::identity(node("b", "/cpu:1").colocate_with(a), a);
  const Output c = ops::neg(node("c", "/gpu:0"), 1.0f);
  const Output d = ops::add(s.named("d").with_attr("_class", "loc:@a"), 1, 2);
  const Output e = cond(
      s.named("e"), true, [&](const Scope&) -> Outputs { return x; },
      [&](const Scope& in) -> Outputs {
        return ops::neg(in.with_device("/cpu:zero").named("f"), x);
      })[0];
  must(s.status());
  const auto error_with = [&](const Output& fetch, PassSet passes) {
    SessionOptions options = on("cpu:2");
    options.passes = passes;
    const Status status =
        make_session(options, graph)
            ->run({{"x", Tensor::scalar(1.0f)}}, {fetch.name()})
            .status();
    CHECK(status.code() == Code::kInvalidArgument);
    return std::string(status.message());
  };
  for (const Output& fetch : {b, c, d, e}) {
    const std::string text = error_with(fetch, PassSet::none());
    CAPTURE(text);
    CHECK(text.starts_with("[placement] node"));
    for (const PassItem& pass : graph::passes())
      CHECK(error_with(fetch, PassSet::only(pass.pass)) == text);
    CHECK(error_with(fetch, PassSet()) == text);
  }
  CHECK(error_with(b, PassSet()) ==
        "[placement] nodes \"a\" and \"b\" must be on one device, and none is "
        "possible: \"a\" asks for \"/cpu:0\"; \"b\" asks for \"/cpu:1\"; they "
        "are together because \"b\" has the class \"loc:@a\"");
  // What nobody asks for contradicts nobody.
  auto session = make_session(on("cpu:2"), graph);
  CHECK(must_run(*session, {{"x", Tensor::scalar(1.0f)}}, {a.name()})[0]
            .scalar_value<float>() == 3);
}

TEST_CASE("a class stays together though its anchor is folded, or not needed") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {});
  const Output anchor =
      ops::add(s.with_device("/cpu:1").named("anchor"), 1.0f, 2.0f);
  const Scope with = s.colocate_with(anchor);
  const Output a = ops::neg(with.named("a"), x);
  const Output b = ops::square(with.named("b"), ops::add(s, x, anchor));
  must(s.status());
  auto session = make_session(on("cpu:3"), graph);
  const auto device_of = [](const Distribution& made, const Output& output) {
    const Node* node = made.placed->find(output.node()->name());
    return made.placement.placement.device_of[node->id()];
  };
  Distribution made = must(session->explain({"x"}, {a.name(), b.name()}));
  CHECK(made.placed->find("anchor") == nullptr);
  CHECK(device_of(made, a) == 1);
  CHECK(device_of(made, b) == 1);
  made = must(session->explain({"x"}, {a.name()}));
  CHECK(made.placed->find("anchor") == nullptr);
}

TEST_CASE("an Identity that asks for another device stays there") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {});
  const Scope there = s.with_device("/cpu:1");
  const Output brought = ops::identity(there.named("brought"), x);
  const Output again = ops::identity(there.named("again"), brought);
  const Output y = ops::neg(s.with_device("/cpu:0").named("y"), again);
  must(s.status());
  auto session = make_session(on("cpu:2"), graph);
  const Distribution made = must(session->explain({"x"}, {y.name()}));
  const Node* placed = made.placed->find("brought");
  REQUIRE(placed != nullptr);
  CHECK(made.placed->find("again") == nullptr);
  CHECK(made.placement.placement.device_of[placed->id()] == 1);
  // On one device it is for nothing.
  Graph alone = graph.clone();
  for (Node* node : alone.nodes()) alone.set_device(node, "/cpu:0");
  const Distribution one =
      must(make_session(on("cpu:1"), alone)->explain({"x"}, {y.name()}));
  CHECK(one.placed->find("brought") == nullptr);
}

TEST_CASE("smoke: an accelerator's scope may hold feeds, arrays and stacks") {
  // y = square(x) for each x, and their sum; z = a fed intermediate result.
  const auto build = [](Graph& graph, const std::string& device) {
    const Scope s = Scope(graph).with_device(device);
    const Output xs = ops::placeholder(s.named("xs"), DataType::kFloat, {4});
    const Output fed = ops::neg(s.named("fed"), xs);
    const Output squares = map_fn(
        s.named("squares"),
        [](const Scope& in, Output x) { return ops::square(in, x); },
        ops::add(s, xs, fed));
    const Output stack = s.named("stack").op(
        "StackV2", {5}, {{"elem_type", DataType::kFloat}})[0];
    const Output pushed = s.op("StackPushV2", {stack, squares})[0];
    const Output popped =
        s.with_control_dependencies({pushed}).named("popped").op(
            "StackPopV2", {stack}, {{"elem_type", DataType::kFloat}})[0];
    ops::reduce_sum(s.named("sum"), popped);
    must(s.status());
  };
  const std::vector<Feed> feeds = {
      {"xs", Tensor::vector<float>({1, 2, 3, 4})},
      {"fed", Tensor::vector<float>({1, 1, 1, 1})}};
  Graph graph;
  build(graph, "/device:STREAM:0");
  for (SessionOptions options : configurations()) {
    options.devices = "cpu:1,stream:1";
    std::string warned;
    options.on_warning = [&](const std::string& text) { warned += text; };
    INFO(describe(options));
    auto session = make_session(options, graph);
    CHECK(must_run(*session, feeds, {"sum"})[0].scalar_value<float>() ==
          4 + 9 + 16 + 25);
    CHECK(warned.empty());
  }
}
