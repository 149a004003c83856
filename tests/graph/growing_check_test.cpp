// GrowingCheck of graph/analysis/validate.h, and FrameMap::extend.
#include <doctest/doctest.h>

#include "graph/analysis/validate.h"
#include "graph/function.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A counter from 0 to 9 whose frame is called "loop".
struct Loop {
  Loop() { must(check.run(graph)); }

  Node* enter(const std::string& name, Node* source, const std::string& frame,
              int parallel = 10) {
    return add(graph, name, "Enter", {{source, 0}},
               {{"frame_name", frame}, {"parallel_iterations", parallel}});
  }
  // What the piece that was added is refused for, as often as it is asked, and
  // by a look at the whole too.
  std::string refusal() {
    const std::string first =
        message_of(check.run(graph), Code::kInvalidArgument);
    CHECK(message_of(check.run(graph), Code::kInvalidArgument) == first);
    CHECK(message_of(validate(graph), Code::kInvalidArgument) == first);
    return first;
  }

  Graph graph;
  Node* zero = constant(graph, "zero", Tensor::scalar(0));
  Node* nine = constant(graph, "nine", Tensor::scalar(9));
  Counter loop = counter(graph, "loop", {zero, 0}, {nine, 0});
  GrowingCheck check;
};

FunctionDef function(const std::string& name, size_t nodes,
                     const std::string& input = "x") {
  FunctionDef f;
  f.signature = OpDefBuilder(name).input("x: float").output("y: float").build();
  for (size_t i = 0; i < nodes; ++i)
    f.nodes.push_back(def("n" + std::to_string(i), "Neg", {input},
                          {{"T", DataType::kFloat}}));
  f.ret = {{"y", "n0:y:0"}};
  return f;
}

}  // namespace

TEST_CASE("each node and function of a graph that grows is looked at once") {
  Graph graph;
  GrowingCheck check;
  must(check.run(graph));
  CHECK(check.num_visits() == 0);
  Node* last = constant(graph, "c", Tensor::scalar(0));
  constexpr int kPieces = 200;
  for (int i = 0; i < kPieces; ++i) {
    const std::string name = "loop" + std::to_string(i);
    last = counter(graph, name, {last, 0}, {last, 0}).exit;
    must(graph.library().add(function("f" + std::to_string(i), 1)));
    CHECK(!check.covers(graph));
    must(check.run(graph));
    CHECK(check.covers(graph));
    must(check.run(graph));
  }
  CHECK(check.num_visits() == graph.size() + kPieces);
  CHECK(check.frames().frames().size() == kPieces + 1);
  CHECK(check.frames().num_nodes() == graph.size());
}

TEST_CASE("a piece may read what is inside of a loop that is there") {
  Loop g;
  const FrameId loop = g.check.frames().of(*g.loop.merge);
  Node* twice =
      add(g.graph, "twice", "AddV2", {{g.loop.body, 0}, {g.loop.body, 0}});
  Node* out = add(g.graph, "out", "Exit", {{twice, 0}});
  Node* more = g.enter("more", g.zero, "loop");
  must(g.check.run(g.graph));
  const FrameMap& frames = g.check.frames();
  CHECK(frames.of(*twice) == loop);
  CHECK(frames.output_of(*out) == FrameId::kRoot);
  CHECK(frames.output_of(*more) == loop);
  CHECK(frames.frame(loop).exits == std::vector{g.loop.exit, out});
  CHECK(frames.frame(loop).enters ==
        std::vector{g.loop.enter, g.loop.limit, more});
}

TEST_CASE("a piece that mixes frames is refused each time, and stays out") {
  Loop g;
  Node* inner = g.enter("inner", g.zero, "inner");
  add(g.graph, "both", "AddV2", {{inner, 0}, {g.loop.body, 0}});
  CHECK(g.refusal() ==
        "[AddV2] node \"both\": input 0 (\"inner:0\") is in frame \"inner\", "
        "but input 1 (\"loop/body:0\") is in frame \"loop\"; neither is inside "
        "the other: take \"loop/body\" out of frame \"loop\" by an Exit");
  // Nothing is left of the piece, neither its frame nor its nodes.
  const FrameMap& frames = g.check.frames();
  CHECK(frames.frames().size() == 2);
  CHECK(frames.num_nodes() == g.graph.size() - 2);
  CHECK(!g.check.covers(g.graph));
  // What comes later does not hide it.
  counter(g.graph, "other", {g.zero, 0}, {g.nine, 0});
  CHECK(contains(g.refusal(), "node \"both\""));
}

TEST_CASE("a frame of a piece that was refused may come again, elsewhere") {
  Graph graph;
  Node* zero = constant(graph, "zero", Tensor::scalar(0));
  GrowingCheck check;
  const auto piece = [&](const std::string& name, const std::string& frame,
                         bool wrong) {
    std::vector<Node*> made = {
        add(graph, name, "Enter", {{zero, 0}}, {{"frame_name", frame}})};
    if (wrong)
      made.push_back(
          add(graph, name + "_", "AddV2", {{made[0], 0}, {zero, 0}}));
    CHECK(check.run(graph).ok() == !wrong);
    if (wrong) graph.remove(made);
  };
  piece("a", "first", false);
  for (int i = 0; i < 100; ++i) piece("b", "second", true);
  piece("b", "other", false);
  piece("c", "second", false);
  piece("d", "second", false);
  const FrameMap fresh = must(FrameMap::build(graph));
  REQUIRE(check.frames().frames().size() == 4);
  for (size_t i = 0; i < 4; ++i)
    CHECK(check.frames().frames()[i].name == fresh.frames()[i].name);
  CHECK(check.frames().frames()[3].enters.size() == 2);
}

TEST_CASE("a piece may not give a loop that is there another parent") {
  Loop g;
  Node* outer = g.enter("outer", g.zero, "outer");
  g.enter("again", outer, "loop");
  CHECK(contains(g.refusal(),
                 "node \"again\": it enters frame \"loop\" from frame "
                 "\"outer\", another Enter of that frame from the root frame"));
}

TEST_CASE("a piece may not give a loop that is there another predicate") {
  Loop g;
  add(g.graph, "cond2", "LoopCond", {{g.loop.less, 0}});
  CHECK(g.refusal() ==
        "[LoopCond] frame \"loop\" has \"loop/cond\" and \"cond2\"; a loop has "
        "one predicate: give each loop a frame_name of its own");
}

TEST_CASE("a piece may not lead a back edge out of a loop that is there") {
  Loop g;
  Node* start = g.enter("start", g.zero, "other");
  add(g.graph, "merge", "Merge", {{start, 0}, {g.loop.next, 0}});
  CHECK(contains(g.refusal(),
                 "node \"merge\": the back edge from \"loop/next:0\" comes "
                 "from frame \"loop\", the Merge is in frame \"other\""));
}

TEST_CASE("a cycle of a piece is refused with its nodes") {
  Loop g;
  // Made by an edge that extend() would have refused.
  Node* merge = add(g.graph, "merge", "Merge", {{g.zero, 0}, {}});
  Node* neg = add(g.graph, "neg", "Neg", {{merge, 0}});
  must(g.graph.set_input(merge, 1, {neg, 0}));
  CHECK(g.refusal() ==
        "[graph] the cycle merge -> neg -> merge does not go through a "
        "NextIteration into a Merge");
}

TEST_CASE("an open back edge of a piece is refused until it is closed") {
  Loop g;
  Node* start = g.enter("start", g.zero, "other");
  Node* merge = add(g.graph, "merge", "Merge", {{start, 0}, {}});
  CHECK(contains(g.refusal(), "input 1 is a back edge that leads nowhere"));
  Node* next = add(g.graph, "next", "NextIteration", {{merge, 0}});
  must(g.graph.set_input(merge, 1, {next, 0}));
  must(g.check.run(g.graph));
}

TEST_CASE("a piece's warnings are added to those of earlier pieces") {
  Loop g;
  g.enter("wide", g.zero, "loop", 3);
  must(g.check.run(g.graph));
  REQUIRE(g.check.frames().warnings().size() == 1);
  CHECK(contains(g.check.frames().warnings()[0], "node \"wide\""));
  // Of a piece that is refused, nothing.
  g.enter("wider", g.zero, "loop", 4);
  add(g.graph, "exit", "Exit", {{g.zero, 0}});
  CHECK(contains(g.refusal(), "node \"exit\": it is in no loop"));
  CHECK(g.check.frames().warnings().size() == 1);
}

TEST_CASE("functions of a piece are checked, and counted, as those before") {
  Graph graph;
  GrowingCheck check(Limits{.max_nodes = 6});
  constant(graph, "c", Tensor::scalar(0));
  must(graph.library().add(function("f", 2)));
  must(check.run(graph));
  CHECK(check.num_visits() == 2);
  // Of two that are wrong, the first by name is told.
  Graph wrong = graph.clone();
  must(wrong.library().add(function("h", 1, "nothing")));
  must(wrong.library().add(function("g", 1, "nothing")));
  CHECK(message_of(check.run(wrong), Code::kInvalidArgument) ==
        "[function] \"g\": node \"n0\": input \"nothing\" is of no argument or "
        "node");
  must(graph.library().add(function("g", 3)));
  must(check.run(graph));
  CHECK(check.num_visits() == 4);
  constant(graph, "d", Tensor::scalar(0));
  CHECK(message_of(check.run(graph), Code::kResourceExhausted) ==
        "[graph] 7 nodes, those of functions included, are over the limit of "
        "6");
}
