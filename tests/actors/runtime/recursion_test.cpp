// Functions that call themselves, run in every configuration.
#include <doctest/doctest.h>
#include <malloc.h>

#include "actors/runtime/call_frames.h"
#include "tests/actors/function_graph.h"
#include "tests/actors/pending.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

TEST_CASE("Fibonacci by recursion is right, run after run") {
  const FunctionGraph g = fibonacci_graph();
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    for (const auto& [n, f] : std::vector<std::pair<int32_t, int32_t>>{
             {0, 0}, {1, 1}, {2, 1}, {10, 55}, {15, 610}, {10, 55}})
      expect_int(*session, n, f);
  }
}

TEST_CASE("each call is a frame of its own, and frames are used again") {
  const auto session = fibonacci_graph().session({});
  RunStats stats;
  REQUIRE(run_int(*session, 10, "y", &stats).ok());
  // 177 calls, of which the first is expanded in place.
  CHECK(stats.frames == 176);
}

TEST_CASE("functions that call each other are right") {
  FunctionGraph g;
  const auto define = [&](const std::string& name, const std::string& other,
                          int32_t at_zero) {
    g.define(function(
        name, {"n: int32"}, {"r: int32"},
        {body_const("zero", Tensor::scalar(0)),
         body_int("end", "Equal", "n", "zero:output:0"),
         if_node("choose", {"end:z:0", "n"}, name + "_end", name + "_next")},
        {{"r", "choose:output:0"}}));
    g.define(function(name + "_end", {"n: int32"}, {"r: int32"},
                      {body_const("value", Tensor::scalar(at_zero))},
                      {{"r", "value:output:0"}}));
    g.define(function(name + "_next", {"n: int32"}, {"r: int32"},
                      {body_const("one", Tensor::scalar(1)),
                       body_int("less", "Sub", "n", "one:output:0"),
                       body_node("other", other, {"less:z:0"})},
                      {{"r", "other:r:0"}}));
  };
  define("is_even", "is_odd", 1);
  define("is_odd", "is_even", 0);
  g.add({int_placeholder("x"), body_node("y", "is_even", {"x"})});
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    for (int32_t n : {0, 1, 2, 7, 100, 101})
      expect_int(*session, n, n % 2 == 0 ? 1 : 0);
  }
}

TEST_CASE("a recursion may be thousands of calls deep") {
  for (const SessionOptions& options : configurations()) {
    const auto session = counting_graph().session(options);
    expect_int(*session, 5000, 5000);
  }
}

TEST_CASE("recursion: after a deep one only a part of the frames is kept") {
  const auto session = counting_graph().session({});
  expect_int(*session, int32_t(CallFrames::kMostKept), CallFrames::kMostKept);
  const size_t before = mallinfo2().uordblks;
  constexpr int32_t kDeep = 8 * CallFrames::kMostKept;
  expect_int(*session, kDeep, kDeep);
  // Actors end by a message. Each of the others would be a KiB at least.
  CHECK(comes_true([&] {
    expect_int(*session, 1, 1);
    return mallinfo2().uordblks <= before + kDeep * size_t(256);
  }));
}

TEST_CASE("a recursion that does not end is refused, and can run again") {
  SessionOptions options;
  options.max_call_depth = 100;
  for (HandOff hand_off : {HandOff::kDirect, HandOff::kMailbox}) {
    options.hand_off = hand_off;
    const auto session = counting_graph().session(options);
    const auto value = run_int(*session, 102);
    CHECK(value.status().code() == Code::kResourceExhausted);
    CHECK(value.status().message() ==
          "[call] calls nest deeper than 100: node \"count/choose/then/rest/"
          "call\" calls function \"count\" from iteration \"count/0/count/0/"
          "count/0/.../count/0/count/0/count/0\"; does the recursion end?");
    expect_int(*session, 100, 100);
  }
}

TEST_CASE("a recursion that branches without end is refused") {
  FunctionGraph g;
  g.define(function(
      "twice", {"n: int32"}, {"r: int32"},
      {body_node("first", "twice", {"n"}), body_node("second", "twice", {"n"}),
       body_int("sum", "AddV2", "first:r:0", "second:r:0")},
      {{"r", "sum:z:0"}}));
  g.add({int_placeholder("x"), body_node("y", "twice", {"x"})});
  for (HandOff hand_off : {HandOff::kDirect, HandOff::kMailbox}) {
    SessionOptions options;
    options.hand_off = hand_off;
    options.workers = 2;
    // No branch gets so deep.
    options.max_call_depth = 1'000'000;
    options.max_open_calls = 1000;
    const auto session = g.session(options);
    for (int run = 0; run < 2; ++run) {
      const auto value = run_int(*session, 1);
      CHECK(value.status().code() == Code::kResourceExhausted);
      const std::string text(value.status().message());
      CAPTURE(text);
      CHECK(text.find("[call] more than 1000 calls are open at once: node ") ==
            0);
      CHECK(text.ends_with("does the recursion end?"));
    }
  }
}

TEST_CASE("recursions that fail leave no call open") {
  // Divides by n on the way back, so that all calls are open when it fails.
  FunctionGraph g;
  g.define(function("down", {"n: int32"}, {"r: int32"},
                    {body_const("zero", Tensor::scalar(0)),
                     body_int("end", "LessEqual", "n", "zero:output:0"),
                     if_node("choose", {"end:z:0", "n"}, "divide", "next")},
                    {{"r", "choose:output:0"}}));
  g.define(function("divide", {"n: int32"}, {"r: int32"},
                    {body_int("ratio", "FloorDiv", "n", "n")},
                    {{"r", "ratio:z:0"}}));
  g.define(function("next", {"n: int32"}, {"r: int32"},
                    {body_const("two", Tensor::scalar(2)),
                     body_int("less", "Sub", "n", "two:output:0"),
                     body_node("again", "down", {"less:z:0"})},
                    {{"r", "again:r:0"}}));
  g.add({int_placeholder("x"), body_node("y", "down", {"x"})});
  for (SessionOptions options : configurations()) {
    CAPTURE(describe(options));
    options.max_open_calls = 20;
    const auto session = g.session(options);
    for (int i = 0; i < 10; ++i) {
      // 0 at the end, after ten calls.
      CHECK(run_int(*session, 20).status().code() == Code::kInvalidArgument);
      // -1, after as many.
      expect_int(*session, 19, 1);
    }
    CHECK(run_int(*session, 60).status().code() == Code::kResourceExhausted);
    expect_int(*session, 19, 1);
  }
}

TEST_CASE("recursion: a node that waits for a recursive call runs after it") {
  // f(n) fails where n is below 0; else it gives n, after f(n - 1) is done.
  FunctionGraph g;
  g.define(function(
      "f", {"n: int32"}, {"r: int32"},
      {body_const("low", Tensor::scalar(-1)),
       body_const("zero", Tensor::scalar(0)),
       body_int("fine", "Greater", "n", "low:output:0"),
       body_node("assert", "Assert", {"fine:z:0", "n"},
                 {{"T", std::vector<DataType>{kInt}}, {"summarize", 3}}),
       body_int("more", "Greater", "n", "zero:output:0"),
       if_node("choose", {"more:z:0", "n"}, "step", "same")},
      {{"r", "choose:output:0"}}));
  g.define(function("same", {"n: int32"}, {"r: int32"}, {}, {{"r", "n"}}));
  g.define(
      function("step", {"n: int32"}, {"r: int32"},
               {body_const("one", Tensor::scalar(1)),
                body_int("less", "Sub", "n", "one:output:0"),
                body_node("rest", "f", {"less:z:0"}),
                body_node("after", "Identity", {"n", "^rest"}, {{"T", kInt}})},
               {{"r", "after:output:0"}}));
  g.add({int_placeholder("x"), body_node("y", "f", {"x"})});
  for (const SessionOptions& options : configurations()) {
    const auto session = g.session(options);
    expect_int(*session, 5, 5);
    CHECK(run_int(*session, -1).status().message().find("[Assert]") !=
          std::string::npos);
  }
}

TEST_CASE("recursion: the limit on open calls is kept exactly") {
  SessionOptions options;
  options.max_open_calls = 30;
  const auto session = counting_graph().session(options);
  for (int i = 0; i < 3; ++i) {
    expect_int(*session, 30, 30);
    expect_int(*session, 30, 30);
    CHECK(run_int(*session, 31).status().code() == Code::kResourceExhausted);
  }
}
