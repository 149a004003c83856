#include "apps/tagflow/stepper/recorder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>

#include "apps/tagflow/stepper/text.h"
#include "graph/builder/builder.h"

using namespace tagflow;
using namespace tagflow::apps::stepper;
namespace tg = tagflow::graph;
namespace ta = tagflow::actors;

namespace {

struct Recorded {
  Recording recording;
  Status status;
};

Recorded record(const tg::Graph& graph, const std::vector<ta::Feed>& feeds,
                const std::vector<std::string>& fetches,
                bool compile_edges = false, size_t limit = 10'000) {
  ta::SessionOptions options;
  options.workers = 1;
  options.passes = compile_edges ? graph::PassSet::only(graph::Pass::kEdges)
                                 : graph::PassSet::none();
  auto session = ta::Session::create(options).value();
  REQUIRE(session->extend(graph).ok());
  ta::RunOptions run;
  run.cancel.emplace();
  std::vector<std::string> fed;
  for (const auto& [port, value] : feeds) fed.push_back(port);
  Recorder recorder(limit, fed, *run.cancel);
  run.observer = &recorder;
  std::promise<Status> done;
  session->run_async(
      feeds, fetches, {}, run,
      [&](Result<std::vector<Tensor>> results, const ta::RunStats&) {
        done.set_value(results.status());
      });
  Recorded recorded;
  recorded.status = done.get_future().get();
  session.reset();
  recorded.recording = recorder.take();
  return recorded;
}

// The worked example: while i < 2: (b, a + b, i + 1) from (1, 1, 1); 1 trip.
std::string add_fibonacci(const tg::Scope& s) {
  const tg::Outputs last = tg::while_loop(
      s,
      [](const tg::Scope& in, const tg::Outputs& v) {
        return tg::ops::less(in, v[2], 2);
      },
      [](const tg::Scope& in, const tg::Outputs& v) -> tg::Outputs {
        return {v[1], tg::ops::add(in, v[0], v[1]), tg::ops::add(in, v[2], 1)};
      },
      {1, 1, 1});
  return last[0].name();
}

size_t count(const Recording& recording, StepKind kind) {
  return size_t(std::ranges::count(recording.steps, kind, &Step::kind));
}

// What is left of all tokens after the last step.
size_t tokens_left(const Recording& recording) {
  std::map<std::pair<int, int>, int> tokens;
  for (const Step& step : recording.steps) {
    for (const TokenChange& change : step.tokens) {
      tokens[{change.scope, change.place}] = change.value;
    }
  }
  return size_t(std::ranges::count_if(
      tokens, [](const auto& token) { return token.second != kGone; }));
}

}  // namespace

TEST_CASE("the worked example is recorded as the specification walks it") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const std::string fetch = add_fibonacci(s);
  REQUIRE(s.ok());
  const auto [recording, status] = record(graph, {}, {fetch});
  REQUIRE(status.ok());
  // The root, and a frame with two iterations.
  REQUIRE(recording.instances.size() == 2);
  CHECK(recording.instances[1].frame == recording.drawing.frames[1].name);
  CHECK(recording.scopes.size() == 3);
  CHECK(count(recording, StepKind::kEnd) == 3);
  // In the order of the example: iteration 0, 1 with its frame, the root.
  std::vector<int> ended;
  for (const Step& step : recording.steps) {
    if (step.kind == StepKind::kEnd) ended.push_back(step.scope);
  }
  const std::vector<std::string> names = scope_names(recording);
  CHECK(names[size_t(ended[0])].ends_with("/0"));
  CHECK(names[size_t(ended[1])].ends_with("/1"));
  CHECK(names[size_t(ended[2])] == "root/0");
  CHECK(recording.steps.back().ends_frame);
  // The body of iteration 1 is dead, and so are its NextIterations.
  for (const Step& step : recording.steps) {
    if (step.node < 0) continue;
    const auto& node = recording.drawing.nodes[size_t(step.node)];
    INFO(node.name);
    if (node.op == "NextIteration") {
      const bool is_first = recording.scopes[size_t(step.scope)].iteration == 0;
      CHECK(step.kind == (is_first ? StepKind::kFire : StepKind::kSkip));
    }
  }
  CHECK(tokens_left(recording) == 0);
}

TEST_CASE("a frame keeps the dead tokens of an Exit until one is live") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const std::string fetch = add_fibonacci(s);
  const Recording recording = record(graph, {}, {fetch}).recording;
  std::vector<std::pair<int, int>> exits;  // kept, dropped
  for (const Step& step : recording.steps) {
    if (step.kept + step.dropped > 0)
      exits.emplace_back(step.kept, step.dropped);
    CHECK(step.dead_exits.empty());
  }
  // Dead in iteration 0, live in 1.
  CHECK(exits == std::vector<std::pair<int, int>>{{1, 0}, {0, 1}});
}

TEST_CASE("a frame is outstanding in its caller from its Enters to its end") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const std::string fetch = add_fibonacci(s);
  const Recording recording = record(graph, {}, {fetch}).recording;
  size_t starts = 0;
  for (const Step& step : recording.steps) starts += step.starts_frame ? 1 : 0;
  CHECK(starts == 2);
  CHECK(recording.steps.front().starts_frame);
  bool was_inside = false;
  for (const Step& step : recording.steps) {
    CHECK(step.running == 0);
    if (step.scope != 0 || step.kind == StepKind::kEnd) continue;
    const bool is_enter =
        step.node >= 0 &&
        recording.drawing.nodes[size_t(step.node)].op == "Enter";
    if (is_enter) CHECK(step.children == 1);
    was_inside = was_inside || step.children == 1;
    // It has ended with the tokens of its Exits.
    if (step.kind == StepKind::kArrive && was_inside) CHECK(step.children == 0);
  }
  CHECK(was_inside);
}

TEST_CASE("a ready queue holds what then fires, next first") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const std::string fetch = add_fibonacci(s);
  const Recording recording = record(graph, {}, {fetch}).recording;
  // By scope, what was said to be next.
  std::map<int, int> next;
  for (const Step& step : recording.steps) {
    if (step.kind == StepKind::kFire || step.kind == StepKind::kSkip) {
      REQUIRE(next.contains(step.scope));
      CHECK(next[step.scope] == step.node);
    }
    next[step.scope] = step.ready.empty() ? -1 : step.ready.front();
  }
}

TEST_CASE("a recording keeps the head and the length of a long ready queue") {
  constexpr size_t kCount = Step::kMaxReady + 50;
  tg::Graph graph;
  const tg::Scope s(graph);
  const tg::Output one = tg::ops::placeholder(s.named("one"), DataType::kInt32);
  tg::Outputs all;
  for (size_t i = 0; i < kCount; ++i) all.push_back(tg::ops::neg(s, one));
  const std::string fetch = tg::ops::add_n(s, all).name();
  REQUIRE(s.ok());
  const Recording recording =
      record(graph, {{"one", Tensor::scalar(1)}}, {fetch}).recording;
  size_t longest = 0;
  for (const Step& step : recording.steps) {
    CHECK(step.ready.size() <= Step::kMaxReady);
    if (step.more_ready > 0) CHECK(step.ready.size() == Step::kMaxReady);
    longest = std::max(longest, step.ready.size() + step.more_ready);
  }
  CHECK(longest == kCount);
  const std::string text = to_text(recording, {});
  CHECK(text.find(", ... 140 more\n") != std::string::npos);
}

TEST_CASE("a node fires when it waits for nothing any more") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const std::string fetch = add_fibonacci(s);
  const Recording recording = record(graph, {}, {fetch}).recording;
  std::map<std::pair<int, int>, int> pending;
  for (const Step& step : recording.steps) {
    if (step.node >= 0) CHECK(pending.at({step.scope, step.node}) == 0);
    for (const PendingChange& change : step.pending) {
      pending[{step.scope, change.node}] = change.count;
    }
    if (step.node >= 0) CHECK(pending.at({step.scope, step.node}) == kFired);
  }
}

TEST_CASE("the same run gives the same recording") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const std::string fetch = add_fibonacci(s);
  const Frontispiece front;
  CHECK(to_json(record(graph, {}, {fetch}).recording, front) ==
        to_json(record(graph, {}, {fetch}).recording, front));
}

TEST_CASE("a recording with control flow as edges leaves no token over") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const std::string fetch = add_fibonacci(s);
  const auto [recording, status] = record(graph, {}, {fetch}, true);
  REQUIRE(status.ok());
  CHECK(count(recording, StepKind::kFire) > 0);
  CHECK(tokens_left(recording) == 0);
}

TEST_CASE("the side of a Switch that is not taken is dead") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const tg::Output p = tg::ops::placeholder(s.named("p"), DataType::kBool,
                                            PartialShape::scalar());
  const tg::Outputs result = tg::cond(
      s, p,
      [](const tg::Scope& in) -> tg::Outputs {
        return {tg::ops::add(in, 1, 2)};
      },
      [](const tg::Scope& in) -> tg::Outputs {
        return {tg::ops::add(in, 3, 4)};
      });
  const auto [made, status] =
      record(graph, {{"p:0", Tensor::scalar(false)}}, {result[0].name()});
  REQUIRE(status.ok());
  const auto& recording = made;  // no lambda captures a structured binding
  CHECK(count(recording, StepKind::kSkip) > 0);
  const auto fired = [&](StepKind kind, const std::string& value) {
    return std::ranges::any_of(recording.steps, [&](const Step& step) {
      return step.kind == kind && step.node >= 0 &&
             recording.drawing.nodes[size_t(step.node)].op == "AddV2" &&
             (step.outputs.empty()
                  ? value == "dead"
                  : recording.values[size_t(step.outputs[0])].brief == value);
    });
  };
  CHECK(fired(StepKind::kFire, "7"));
  CHECK(fired(StepKind::kSkip, "dead"));
  CHECK(tokens_left(recording) == 0);
}

TEST_CASE(
    "each instance of an inner loop has the iteration it is called from") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const auto below = [](int limit) {
    return [limit](const tg::Scope& in, const tg::Outputs& v) {
      return tg::ops::less(in, v[0], limit);
    };
  };
  const tg::Outputs result = tg::while_loop(
      s, below(2),
      [&](const tg::Scope& in, const tg::Outputs& v) -> tg::Outputs {
        const tg::Outputs inner = tg::while_loop(
            in, below(3),
            [](const tg::Scope& b, const tg::Outputs& w) -> tg::Outputs {
              return {tg::ops::add(b, w[0], 1)};
            },
            {0});
        return {tg::ops::add(in, v[0], tg::ops::sub(in, inner[0], 2))};
      },
      {0});
  REQUIRE(s.ok());
  const auto [recording, status] = record(graph, {}, {result[0].name()});
  REQUIRE(status.ok());
  // The last one is entered by dead tokens.
  REQUIRE(recording.instances.size() == 5);
  for (const size_t i : {2u, 3u, 4u}) {
    const Instance& inner = recording.instances[i];
    CHECK(inner.number == 1);
    const Scope& caller = recording.scopes[size_t(inner.caller)];
    CHECK(caller.instance == 1);
    CHECK(caller.iteration == int64_t(i) - 2);
    // Drawn inside of it.
    CHECK(recording.drawing.frames[size_t(inner.drawn)].parent ==
          recording.instances[1].drawn);
  }
  CHECK(tokens_left(recording) == 0);
  // The one that was entered dead gives back a dead token at its end.
  CHECK(std::ranges::count_if(recording.steps, [](const Step& step) {
          return !step.dead_exits.empty();
        }) == 1);
  // What happens in an instance is named with all that is around.
  const std::string outer = recording.instances[1].frame;
  const std::string inner = recording.instances[2].frame;
  const std::vector<std::string> names = scope_names(recording);
  for (size_t scope = 0; scope < recording.scopes.size(); ++scope) {
    const auto [instance, iteration] = recording.scopes[scope];
    if (instance != 3) continue;
    CHECK(names[scope] ==
          outer + "/1/" + inner + "/" + std::to_string(iteration));
  }
}

TEST_CASE("the name of a scope has the outermost and innermost levels only") {
  // A function calls itself: scope i is of its call i, in the root's scope 0.
  Recording recording;
  recording.instances = {{"", "", 0, -1, 1}};
  recording.scopes = {{0, 0}};
  for (int i = 1; i <= 20; ++i) {
    recording.instances.push_back(
        {"f", i == 20 ? " on GPU:0" : "", 1, i - 1, i == 2 || i == 18 ? 2 : 1});
    recording.scopes.push_back({i, i});
  }
  const std::vector<std::string> names = scope_names(recording);
  CHECK(names[0] == "root/0");
  CHECK(names[2] == "f/1/f#2/2");
  CHECK(names[7] == "f/1/f#2/2/f/3/f/4/f/5/f/6/f/7");
  CHECK(names[8] == "f/1/f#2/2/f/3/.../f/6/f/7/f/8");
  CHECK(names[9] == "f/1/f#2/2/f/3/.../f/7/f/8/f/9");
  CHECK(names[20] == "f/1/f#2/2/f/3/.../f#2/18/f/19/f on GPU:0/20");
}

TEST_CASE("a run beyond the limit is stopped, and says so") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const tg::Outputs forever = tg::while_loop(
      s,
      [](const tg::Scope& in, const tg::Outputs& v) {
        return tg::ops::greater_equal(in, v[0], 0);
      },
      [](const tg::Scope&, const tg::Outputs& v) -> tg::Outputs { return v; },
      {0});
  REQUIRE(s.ok());
  const auto [recording, status] =
      record(graph, {}, {forever[0].name()}, false, 100);
  CHECK(status.code() == Code::kCancelled);
  CHECK(recording.is_full);
  CHECK(recording.steps.size() == 100);
}

TEST_CASE("a run that fails is recorded up to the node that failed") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const tg::Output bad = tg::ops::floor_div(s.named("bad"), 1, 0);
  REQUIRE(s.ok());
  const auto [recording, status] = record(graph, {}, {bad.name()});
  CHECK_FALSE(status.ok());
  const Step& last = recording.steps.back();
  REQUIRE(last.node >= 0);
  CHECK(recording.drawing.nodes[size_t(last.node)].name == "bad");
  CHECK(last.outputs.empty());
}

TEST_CASE("no text of a graph can end the page's script") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const tg::Output text = tg::ops::constant(
      s.named("c"), Tensor::scalar("</script><script>alert(1)<!--"));
  const tg::Output copy = tg::ops::identity(s.named("copy"), text);
  REQUIRE(s.ok());
  const auto [recording, status] = record(graph, {}, {copy.name()});
  REQUIRE(status.ok());
  apps::draw::Layout layout;
  layout.nodes.resize(recording.drawing.nodes.size());
  layout.edges.resize(recording.drawing.edges.size());
  layout.frames.resize(1);
  Frontispiece front;
  front.title = "</script>";
  const std::string page = to_page(recording, front, layout);
  CHECK(page.find("</script><") == std::string::npos);
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("<!--") == std::string::npos);
  // The data is still what it was.
  const size_t begin = page.find('{', page.find("id=\"recording\""));
  const std::string data = page.substr(begin, page.find("\n", begin) - begin);
  const auto json = nlohmann::json::parse(data, nullptr, false);
  REQUIRE(json.is_object());
  CHECK(json["title"] == "</script>");
}
