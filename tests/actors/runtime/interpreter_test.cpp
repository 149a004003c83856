// The interpreter alone: the inputs of an iteration, and its outputs.
#include "actors/runtime/interpreter.h"

#include <doctest/doctest.h>

#include "tests/actors/runtime/driven_interpreter.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// y is x's negative, or its square if p is true.
struct Choice {
  Choice() {
    const Scope s(graph);
    const Output x = ops::placeholder(s.named("x"), DataType::kInt32, {});
    const Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
    const Output branch = s.named("branch").op("Switch", {x, p});
    const Output less = ops::neg(s.named("less"), branch);
    const Output more = ops::square(s.named("more"), Output{branch.node(), 1});
    s.named("y").op("Merge", {less, more});
    REQUIRE(s.status().to_string() == "OK");
  }
  Graph graph;
};

}  // namespace

TEST_CASE("smoke: a Merge fires with the input that is live") {
  const Choice choice;
  for (const bool compile_edges : {false, true})
    for (const bool p : {false, true}) {
      CAPTURE(compile_edges);
      CAPTURE(p);
      const Compiled compiled(choice.graph, {"x:0", "p:0"}, {"y:0", "y:1"},
                              compile_edges);
      Driver root(compiled);
      root.begin(0);
      root.arrive(0, Tensor::scalar(3));
      root.run();
      CHECK(compiled.fetch(0).state == FetchSlot::kMissing);
      root.arrive(1, Tensor::scalar(p));
      root.run();
      REQUIRE(compiled.fetch(0).state == FetchSlot::kLive);
      CHECK(compiled.fetch(0).value.scalar_value<int32_t>() == (p ? 9 : -3));
      CHECK(compiled.fetch(1).value.scalar_value<int32_t>() == (p ? 1 : 0));
      CHECK_FALSE(root.interpreter.is_outstanding());
    }
}

TEST_CASE("smoke: a Merge is dead when all its inputs are") {
  const Choice choice;
  const Compiled compiled(choice.graph, {"x:0", "p:0"}, {"y:0"}, false);
  Driver root(compiled);
  root.begin(0);
  root.interpreter.arrive(0, true, {});
  root.arrive(1, Tensor::scalar(true));
  root.run();
  CHECK(compiled.fetch(0).state == FetchSlot::kDead);
  // Skipped: the Switch, what is behind it, and the Merge.
  CHECK(root.interpreter.counters().dead == 4);
}

TEST_CASE("smoke: a loop's tokens go out to the frame, around, and back") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32, {});
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], v[1]);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], v[0]), v[1]};
      },
      {x, n});
  ops::identity(s.named("y"), last[0]);
  REQUIRE(s.status().to_string() == "OK");
  const Compiled compiled(graph, {"x:0", "n:0"}, {"y:0"}, true);

  Driver root(compiled);
  root.begin(0);
  root.arrive(0, Tensor::scalar(1));
  root.arrive(1, Tensor::scalar(5));
  root.run();
  Interpreter::Outbox& out = root.interpreter.out();
  REQUIRE(out.enter.size() == 1);
  REQUIRE(out.enter[0] != nullptr);

  Driver loop(compiled, 1);
  loop.begin(0);
  loop.arrive(std::exchange(out.enter[0], nullptr), root.pool);
  loop.run();
  int64_t trips = 0;
  while (Batch* next = std::exchange(loop.interpreter.out().next, nullptr)) {
    loop.interpreter.end();
    loop.begin(++trips);
    loop.arrive(next, loop.pool);
    loop.run();
  }
  CHECK(trips == 3);  // 1, 2, 4, 8
  Batch* const exit = std::exchange(loop.interpreter.out().exit, nullptr);
  REQUIRE(exit != nullptr);
  REQUIRE(exit->tokens.size() == 1);
  const ExitItem& item =
      compiled.frame(1).plan->exits[exit->tokens.begin()->slot];
  root.arrive(item.parent_arrival, std::move(exit->tokens.begin()->value));
  loop.pool.give(exit);
  root.run();
  REQUIRE(compiled.fetch(0).state == FetchSlot::kLive);
  CHECK(compiled.fetch(0).value.scalar_value<int32_t>() == 8);
}

TEST_CASE("smoke: an interpreter frees the values of unfinished iterations") {
  const Choice choice;
  const Compiled compiled(choice.graph, {"x:0", "p:0"}, {"y:0"}, false);
  Driver root(compiled);
  const Tensor x = Tensor::make(DataType::kInt32, {100});
  root.begin(0);
  root.arrive(0, x);
  root.run();
  CHECK_FALSE(x.unique());
  root.interpreter.reset();
  CHECK(x.unique());
}
