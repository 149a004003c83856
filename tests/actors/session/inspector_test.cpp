// Runs that somebody looks at, stops and lets go on.
#include "actors/session/inspector.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "graph/builder/builder.h"
#include "tests/actors/counting_loop.h"
#include "tests/actors/pending.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_queue.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

constexpr std::chrono::seconds kPatience{10};

// The frames of nested_loops().
const std::string kOuter = "outer/while_context";
const std::string kInner = "outer/inner/while_context";

// Waits until an iteration is stopped, and what has begun before it is over.
StepView stopped_view(Inspector& inspector) {
  StepView view;
  REQUIRE(comes_true([&] {
    auto seen = inspector.look(kPatience);
    if (seen) view = std::move(*seen);
    return view.is_stopped;
  }));
  return view;
}

// The iteration that is stopped in a frame of that name.
const StepView::Iteration& stopped_in(const StepView& view,
                                      const std::string& frame) {
  for (const StepView::Frame& one : view.frames)
    if (one.name == frame)
      for (const StepView::Iteration& iteration : one.iterations)
        if (iteration.is_stopped) return iteration;
  FAIL("no iteration is stopped in " << frame);
  return view.frames.front().iterations.front();
}

RunOptions inspected(Inspector& inspector) {
  RunOptions options = within_a_minute();
  options.inspector = &inspector;
  return options;
}

int32_t int_of(const Answer& answer) {
  REQUIRE_MESSAGE(answer.ok(), answer.status().to_string());
  return (*answer)[0].item<int32_t>().value();
}

// for i in 0 .. 3: for j in 0 .. 4: x += 1
Graph nested_loops() {
  Graph graph;
  const Scope s(graph);
  const Outputs outer = while_loop(
      s.named("outer"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 3); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Outputs inner = while_loop(
            in.named("inner"),
            [](const Scope& deep, const Outputs& w) {
              return ops::less(deep, w[0], 4);
            },
            [](const Scope& deep, const Outputs& w) -> Outputs {
              return {ops::add(deep, w[0], 1), ops::add(deep, w[1], 1)};
            },
            {ops::constant(in, Tensor::scalar<int32_t>(0)), v[1]});
        return {ops::add(in, v[0], 1), inner[1]};
      },
      {0, 0});
  ops::identity(s.named("x"), outer[1]);
  testing::must(s.status());
  return graph;
}

}  // namespace

TEST_CASE("a run stops before an iteration, and shows the tokens for it") {
  for (SessionOptions options : hand_offs_by_workers()) {
    CAPTURE(int(options.hand_off));
    for (const int window : {1, 2, 10}) {
      CAPTURE(window);
      options.window = window;
      Inspector inspector;
      inspector.stop_at({"loop", 3});
      const auto session = make_session(options, counting_loop({}));
      Pending run(*session, {{"n", Tensor::scalar<int32_t>(7)}}, {"exit"},
                  inspected(inspector));
      StepView view = stopped_view(inspector);
      CHECK_FALSE(run.answered());
      const StepView::Iteration& third = stopped_in(view, "loop");
      CHECK(third.number == 3);
      REQUIRE(third.tokens.size() == 1);
      CHECK(third.tokens[0].node == "next");
      CHECK(third.tokens[0].value == "int32[] 3");
      // Nothing else is left to do.
      CHECK(view.frames.back().iterations.size() == 1);

      inspector.advance("loop");
      view = stopped_view(inspector);
      CHECK(stopped_in(view, "loop").number == 4);
      CHECK(stopped_in(view, "loop").tokens[0].value == "int32[] 4");

      inspector.go_on();
      CHECK(int_of(run.get()) == 7);
      CHECK_FALSE(inspector.look(kPatience).has_value());
    }
  }
}

TEST_CASE("a stop of an inner loop holds the outer one, in its frame") {
  Inspector inspector;
  SessionOptions options;
  options.window = 1;  // otherwise the outer loop runs ahead
  const auto session = make_session(options, nested_loops());
  inspector.stop_at({kInner, 2});
  Pending run(*session, {}, {"x"}, inspected(inspector));
  StepView view = stopped_view(inspector);
  REQUIRE(view.frames.size() == 3);
  CHECK(view.frames[0].parent == -1);
  CHECK(view.frames[1].name == kOuter);
  CHECK(view.frames[1].parent == 0);
  CHECK(view.frames[2].parent == 1);
  CHECK(view.frames[2].tag == kOuter + "/0/" + kInner);
  CHECK(stopped_in(view, kInner).number == 2);

  SUBCASE("the next step may be that of the next instance") {
    std::vector<int64_t> numbers;
    for (int i = 0; i < 4; ++i) {
      inspector.advance(kInner);
      view = stopped_view(inspector);
      numbers.push_back(stopped_in(view, kInner).number);
    }
    CHECK(numbers == std::vector<int64_t>{3, 4, 0, 1});
    CHECK(view.frames[2].tag == kOuter + "/1/" + kInner);
  }
  SUBCASE("a stop of any loop is at the next iteration that begins") {
    inspector.advance("");
    view = stopped_view(inspector);
    CHECK(stopped_in(view, kInner).number == 3);
  }
  SUBCASE("a new stop replaces the old one") {
    inspector.stop_at({kOuter, 2});
    view = stopped_view(inspector);
    CHECK(stopped_in(view, kOuter).number == 2);
  }
  inspector.go_on();
  CHECK(int_of(run.get()) == 12);
}

TEST_CASE("looks at a run that goes on do not change its result") {
  for (SessionOptions options : hand_offs_by_workers()) {
    CAPTURE(int(options.hand_off));
    options.window = 4;
    Inspector inspector;
    const auto session = make_session(options, counting_loop({}));
    Pending run(*session, {{"n", Tensor::scalar<int32_t>(20'000)}}, {"exit"},
                inspected(inspector));
    uint64_t seen = 0;
    int64_t newest = 0;
    while (!run.answered()) {
      const auto view = inspector.look(kPatience);
      if (!view) continue;
      ++seen;
      for (const StepView::Frame& frame : view->frames) {
        if (frame.iterations.empty() || frame.name.empty()) continue;
        CHECK(frame.iterations.size() <= 4);
        CHECK(frame.iterations.back().number >= newest);
        newest = frame.iterations.back().number;
      }
    }
    CHECK(int_of(run.get()) == 20'000);
    CAPTURE(seen);
  }
}

TEST_CASE("a stopped run ends by whatever ends others") {
  Inspector inspector;
  const auto session = make_session({}, counting_loop({}));
  inspector.stop_at({"", 1});
  const std::vector<Feed> feeds = {{"n", Tensor::scalar<int32_t>(7)}};

  SUBCASE("by its caller") {
    Pending run(*session, feeds, {"exit"}, inspected(inspector));
    stopped_view(inspector);
    run.token.cancel();
    CHECK(run.get().status().code() == Code::kCancelled);
  }
  SUBCASE("by its time-out") {
    RunOptions options = inspected(inspector);
    options.timeout = std::chrono::milliseconds(20);
    Pending run(*session, feeds, {"exit"}, options);
    const Status status = run.get().status();
    CHECK(status.code() == Code::kDeadlineExceeded);
  }
  SUBCASE("by the end of its session") {
    Pending run(*session, feeds, {"exit"}, inspected(inspector));
    stopped_view(inspector);
    testing::must(session->close());
    CHECK(run.get().status().code() == Code::kCancelled);
  }
  // The next one is stopped again, and its actors are as new.
  const auto fresh = make_session({}, counting_loop({}));
  Pending again(*fresh, feeds, {"exit"}, inspected(inspector));
  CHECK(stopped_in(stopped_view(inspector), "loop").number == 1);
  inspector.go_on();
  CHECK(int_of(again.get()) == 7);
}

TEST_CASE("the actors of a run that was stopped and cancelled run again") {
  Inspector inspector;
  const auto session = make_session({}, nested_loops());
  for (int i = 0; i < 20; ++i) {
    inspector.stop_at({kInner, i % 5});
    Pending run(*session, {}, {"x"}, inspected(inspector));
    stopped_view(inspector);
    run.token.cancel();
    CHECK(run.get().status().code() == Code::kCancelled);
    inspector.go_on();
    CHECK(int_of(Pending(*session, {}, {"x"}, inspected(inspector)).get()) ==
          12);
  }
}

TEST_CASE("a look says what a run waits for, and does not end the wait") {
  TestQueue::global().clear();
  Graph graph;
  const Scope s(graph);
  ops::identity(s.named("y"), ops::add(s, test_take(s.named("take")), 1));
  testing::must(s.status());
  Inspector inspector;
  const auto session = make_session({}, graph);
  Pending run(*session, {}, {"y"}, inspected(inspector));
  REQUIRE(comes_true([] { return TestQueue::global().waiting() == 1; }));
  StepView view;
  REQUIRE(comes_true([&] {
    auto seen = inspector.look(kPatience);
    if (seen) view = std::move(*seen);
    return !view.kernels.empty();
  }));
  CHECK(view.kernels[0].find("take") != std::string::npos);
  REQUIRE_FALSE(view.waits.empty());
  CHECK(view.waits[0].find("take") != std::string::npos);
  CHECK_FALSE(view.is_stopped);
  CHECK_FALSE(run.answered());
  TestQueue::global().put(41);
  CHECK(int_of(run.get()) == 42);
}

TEST_CASE("an iteration that begins next is in flight, with its tokens") {
  for (const SessionOptions& options : hand_offs_by_workers()) {
    CAPTURE(int(options.hand_off));
    Inspector inspector;
    const auto session = make_session(options, counting_loop({}));
    Pending run(*session, {{"n", Tensor::scalar(INT32_MAX)}}, {"exit"},
                inspected(inspector));
    // Between two iterations a token is all that there is of the loop. Rarely,
    // a look finds none, since the token is on its way between actors.
    bool has_token = false;
    REQUIRE(comes_true([&] {
      const auto view = inspector.look(kPatience);
      if (!view || view->frames.size() < 2) return false;
      const StepView::Frame& loop = view->frames[1];
      for (const StepView::Iteration& one : loop.iterations) {
        if (one.fired + one.waiting + one.running + one.untouched > 0) continue;
        CHECK_FALSE(one.is_stopped);
        if (one.number == 0) continue;
        has_token =
            one.tokens.size() == 1 &&
            one.tokens[0].value == fmt::format("int32[] {}", one.number);
        CHECK(has_token);
      }
      return has_token;
    }));
    run.token.cancel();
    CHECK(run.get().status().code() == Code::kCancelled);
  }
}

TEST_CASE("a watched tensor has its value of the last iteration") {
  Inspector inspector;
  SessionOptions options;
  options.passes = PassSet::none();
  const auto session = make_session(options, counting_loop({}));
  inspector.stop_at({"loop", 2});
  Pending run(*session, {{"n", Tensor::scalar<int32_t>(9)}}, {"exit"},
              inspected(inspector));
  stopped_view(inspector);
  testing::must(inspector.watch({"plus:0"}));
  CHECK(inspector.watched()[0].times == 0);
  // It begins with the next look.
  stopped_view(inspector);
  inspector.advance("loop");
  CHECK(stopped_in(stopped_view(inspector), "loop").number == 3);
  const Inspector::Watched seen = inspector.watched()[0];
  CHECK(seen.tensor == "plus:0");
  CHECK(seen.times == 1);
  CHECK(seen.tag == "loop/2");
  CHECK(seen.value == "int32[] 3");

  testing::must(inspector.watch({}));
  CHECK(inspector.watched().empty());
  inspector.go_on();
  CHECK(int_of(run.get()) == 9);
  CHECK(inspector.watch({"plus:x"}).code() == Code::kInvalidArgument);
  CHECK(inspector.watch(std::vector<std::string>(17, "a:0")).code() ==
        Code::kResourceExhausted);
}
