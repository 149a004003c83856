// What observers see of an iteration, and what of it counts as running.
#include "actors/runtime/iteration_view.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/holding_op.h"
#include "tests/actors/runtime/driven_interpreter.h"
#include "tests/actors/runtime/stepwise.h"
#include "tests/actors/test_queue.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// "x": a fed scalar.
Output scalar(const Scope& s, const char* name,
              DataType dtype = DataType::kInt32) {
  return ops::placeholder(s.named(name), dtype, {});
}

// A driven iteration of the root, and the view of it.
struct Viewed {
  explicit Viewed(const Compiled& compiled, EngineActor* owner = nullptr)
      : driver(compiled, 0, owner),
        view(*compiled.frame(0).plan, driver.interpreter.state(),
             &driver.interpreter),
        alone(*compiled.frame(0).plan, driver.interpreter.state()) {
    driver.begin(0);
  }
  size_t index(std::string_view name) const {
    for (size_t i = 0; i < view.num_nodes(); ++i)
      if (view.node(i).name() == name) return i;
    FAIL("no such node");
    return 0;
  }
  uint32_t pending(std::string_view name) const {
    return view.pending(index(name));
  }
  bool has_fired(std::string_view name) const {
    return view.has_fired(index(name));
  }
  // The name of the node that fires next.
  std::string next() const {
    REQUIRE_FALSE(view.ready().empty());
    return view.node(view.ready().back()).name();
  }

  Driver driver;
  Interpreter& interpreter = driver.interpreter;
  const IterationView view;
  const IterationView alone;  // without the interpreter
};

// The time slice of a thread that must yield.
constexpr std::chrono::nanoseconds kOver{-1};

}  // namespace

TEST_CASE("a node waits for all its inputs, a Merge for one of them") {
  Graph graph;
  const Scope s(graph);
  const Output x = scalar(s, "x"), p = scalar(s, "p", DataType::kBool);
  const Output branch = s.named("branch").op("Switch", {x, p});
  const Output less = ops::neg(s.named("less"), branch);
  const Output more = ops::square(s.named("more"), Output{branch.node(), 1});
  s.named("y").op("Merge", {less, more});
  REQUIRE(s.status().to_string() == "OK");
  const Compiled compiled(graph, {"x:0", "p:0"}, {"y:0"}, false);
  for (const bool p_is : {false, true}) {
    CAPTURE(p_is);
    Viewed root(compiled);
    CHECK(root.view.num_nodes() == 4);
    CHECK(root.pending("branch") == 2);
    CHECK(root.pending("y") == 1);
    root.driver.arrive(0, Tensor::scalar(3));
    CHECK(root.pending("branch") == 1);
    CHECK(root.view.ready().empty());
    root.driver.arrive(1, Tensor::scalar(p_is));
    CHECK(root.pending("branch") == 0);
    CHECK(root.next() == "branch");
    CHECK_FALSE(root.has_fired("branch"));
    root.driver.run();
    CHECK(root.view.taken(root.index("branch")) == (p_is ? 1 : 0));
    // One of them was skipped.
    for (const char* name : {"branch", "less", "more", "y"})
      CHECK(root.has_fired(name));
    CHECK(root.pending("y") == 0);
    CHECK(root.view.ready().empty());
  }
}

TEST_CASE("a Switch with many outputs tells which one it took") {
  Graph graph;
  const Scope s(graph);
  const Output x = scalar(s, "x"), k = scalar(s, "k");
  const Output branch =
      s.named("branch").op("_SwitchN", {x, k}, {{"num_outs", 3}});
  ops::neg(s.named("y"), Output{branch.node(), 2});
  REQUIRE(s.status().to_string() == "OK");
  const Compiled compiled(graph, {"x:0", "k:0"}, {"y:0"}, false);
  for (const auto& [index, taken] :
       {std::pair(0, 0u), std::pair(1, 1u), std::pair(7, 2u)}) {
    Viewed root(compiled);
    root.driver.arrive(0, Tensor::scalar(3));
    root.driver.arrive(1, Tensor::scalar(index));
    root.driver.run();
    REQUIRE(root.has_fired("branch"));
    CHECK(root.view.taken(root.index("branch")) == taken);
  }
}

TEST_CASE("the last of the ready nodes fires next") {
  class Firings : public Observer {
   public:
    void on_fire(const Location&, const Node& node, bool) override {
      names.push_back(node.name());
    }
    std::vector<std::string> names;
  };
  Graph graph;
  const Scope s(graph);
  const Output x = scalar(s, "x");
  ops::neg(s.named("a"), x);
  ops::neg(s.named("b"), x);
  REQUIRE(s.status().to_string() == "OK");
  Compiled compiled(graph, {"x:0"}, {"a:0", "b:0"}, true);
  Firings firings;
  compiled.set_observer(firings);
  Viewed root(compiled);
  root.driver.arrive(0, Tensor::scalar(1));
  REQUIRE(root.view.ready().size() == 2);
  const std::string first = root.next();
  root.driver.run();
  REQUIRE(firings.names.size() == 2);
  CHECK(firings.names[0] == first);
  CHECK(firings.names[1] != first);
}

TEST_CASE("a heavy kernel runs from its deferral to its answer") {
  Graph graph;
  const Scope s(graph);
  const Output x = scalar(s, "x");
  test_block(s.named("a"), x);
  test_block(s.named("b"), x);
  REQUIRE(s.status().to_string() == "OK");
  const Compiled compiled(graph, {"x:0"}, {"a:0", "b:0"}, true);
  Viewed root(compiled);
  CHECK(root.view.running() == 0);
  root.driver.arrive(0, Tensor::scalar(2));
  CHECK(root.view.running() == 0);  // ready, not fired
  CHECK(root.interpreter.run(root.driver.runner));
  CHECK(root.view.running() == 2);  // both are deferred
  CHECK(root.alone.running() == 0);
  KernelRequest* given = nullptr;
  root.interpreter.give_heavy(1, [&](KernelRequest& one) { given = &one; });
  REQUIRE(given != nullptr);
  CHECK(root.view.running() == 2);  // one is at the device
  root.interpreter.fire_heavy(root.driver.runner);
  CHECK(root.view.running() == 1);
  given->outputs[0] = Tensor::scalar(2);
  root.interpreter.take_answer(*given);
  CHECK(root.view.running() == 0);
  CHECK(compiled.fetch(0).state == FetchSlot::kLive);
  CHECK(compiled.fetch(1).state == FetchSlot::kLive);
}

TEST_CASE("an asynchronous kernel runs until its answer is taken") {
  TestQueue::global().clear();
  Graph graph;
  const Scope s(graph);
  test_take(s.named("y"));
  REQUIRE(s.status().to_string() == "OK");
  const Compiled compiled(graph, {}, {"y:0"}, true);
  compiled.step()->add_activity();  // the test's own
  Receiver owner;
  Viewed root(compiled, owner.actor());
  root.driver.run();
  CHECK(root.view.running() == 1);
  CHECK(root.interpreter.is_outstanding());
  TestQueue::global().put(7);
  CHECK(root.view.running() == 1);  // the answer is on its way
  REQUIRE(owner.run().size() == 1);
  root.interpreter.take_answer(*owner.run()[0]->request);
  CHECK(root.view.running() == 0);
  REQUIRE(compiled.fetch(0).state == FetchSlot::kLive);
  CHECK(compiled.fetch(0).value.scalar_value<int32_t>() == 7);
}

TEST_CASE("an output that is sent in parts does not count as a kernel") {
  constexpr uint32_t kReaders = 2 * kEdgesPerCheck + 1;
  Graph graph;
  const Scope s(graph);
  const Output x = scalar(s, "x"), z = scalar(s, "z");
  ops::add_n(s.named("y"), std::vector<Output>(kReaders, x));
  test_block(s.named("heavy"), z);
  REQUIRE(s.status().to_string() == "OK");
  const Compiled compiled(graph, {"x:0", "z:0"}, {"y:0", "heavy:0"}, true);
  for (const bool has_heavy : {false, true}) {
    CAPTURE(has_heavy);
    const size_t running = has_heavy ? 1 : 0;
    Viewed root(compiled);
    if (has_heavy) {
      root.driver.arrive(1, Tensor::scalar(2));
      CHECK(root.interpreter.run(root.driver.runner));
    }
    root.driver.arrive(0, Tensor::scalar(1));
    CHECK(root.view.running() == running);
    for (const uint32_t left : {kReaders, kEdgesPerCheck + 1, uint32_t(1)}) {
      CHECK(root.pending("y") == left);
      Runner late(nullptr, HandOff::kDirect, kOver);
      CHECK_FALSE(root.interpreter.run(late));
      CHECK(root.view.running() == running);
    }
    CHECK(root.next() == "y");
  }
}

TEST_CASE("a child frame is not a kernel, and counts from its first token on") {
  Graph graph;
  const Scope s(graph);
  const Output x = scalar(s, "x");
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 9); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], v[0])};
      },
      {x});
  ops::identity(s.named("y"), last[0]);
  REQUIRE(s.status().to_string() == "OK");
  const Compiled compiled(graph, {"x:0"}, {"y:0"}, true);
  Viewed root(compiled);
  CHECK(root.view.children() == 0);
  root.driver.arrive(0, Tensor::scalar(1));
  root.driver.run();
  CHECK(root.view.children() == 1);  // its tokens are not posted yet
  Batch* const enter = std::exchange(root.interpreter.out().enter[0], nullptr);
  REQUIRE(enter != nullptr);
  root.interpreter.begin_child(0);
  root.driver.pool.give(enter);
  CHECK(root.view.children() == 1);
  CHECK(root.alone.children() == 0);
  CHECK(root.view.running() == 0);
  root.interpreter.end_child(0);
  CHECK(root.view.children() == 0);
}

TEST_CASE("the text of a tag names the frame and the iteration") {
  Graph graph;
  const Scope s(graph);
  ops::neg(s.named("y"), scalar(s, "x"));
  REQUIRE(s.status().to_string() == "OK");
  const Compiled compiled(graph, {"x:0"}, {"y:0"}, true);
  Location location;
  location.instance = &compiled.frame(0);
  location.tag.iteration = 2;
  CHECK(tag_text(location) == "root/2");
}
