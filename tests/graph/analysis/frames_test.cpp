#include "graph/analysis/frames.h"

#include <doctest/doctest.h>

#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A graph with two scalars to start loops from.
struct Ground {
  Graph graph;
  Node* zero = constant(graph, "zero", Tensor::scalar(0));
  Node* nine = constant(graph, "nine", Tensor::scalar(9));

  Node* enter(const std::string& name, Node* source, const std::string& frame,
              int parallel = 10) {
    return add(graph, name, "Enter", {{source, 0}},
               {{"frame_name", frame}, {"parallel_iterations", parallel}});
  }
  std::string refusal() const {
    return message_of(FrameMap::build(graph).status(), Code::kInvalidArgument);
  }
};

// A counter whose body runs another counter.
struct Nested : Ground {
  Counter outer = counter(graph, "outer", {zero, 0}, {nine, 0});
  Counter inner = counter(graph, "inner", {outer.body, 0}, {outer.limit, 0});
};

}  // namespace

TEST_CASE("a graph without loops has one frame") {
  Ground g;
  const FrameMap frames = must(FrameMap::build(g.graph));
  REQUIRE(frames.frames().size() == 1);
  CHECK(frames.frames()[0].name.empty());
  CHECK(frames.of(*g.zero) == FrameId::kRoot);
}

TEST_CASE("a loop's nodes run in its frame, Enters and results outside") {
  Ground g;
  const Counter c = counter(g.graph, "loop", {g.zero, 0}, {g.nine, 0});
  Node* after = add(g.graph, "after", "Identity", {{c.exit, 0}});
  const FrameMap frames = must(FrameMap::build(g.graph));
  REQUIRE(frames.frames().size() == 2);
  const StaticFrame& loop = frames.frames()[1];
  CHECK(loop.name == "loop");
  CHECK(loop.parent == FrameId::kRoot);
  CHECK(loop.depth == 1);
  CHECK(loop.parallel_iterations == 10);
  for (const Node* node : {c.merge, c.less, c.cond, c.branch, c.body, c.add,
                           c.next, c.exit, g.graph.find("loop/one")}) {
    CAPTURE(node->name());
    CHECK(frames.of(*node) == loop.id);
  }
  CHECK(frames.of(*c.enter) == FrameId::kRoot);
  CHECK(frames.output_of(*c.enter) == loop.id);
  CHECK(frames.output_of(*c.exit) == FrameId::kRoot);
  CHECK(frames.of(*after) == FrameId::kRoot);
  CHECK(loop.enters == std::vector{c.enter, c.limit});
  CHECK(loop.exits == std::vector{c.exit});
  CHECK(loop.next_iterations == std::vector{c.next});
  CHECK(loop.loop_conds == std::vector{c.cond});
  CHECK(loop.merges == std::vector{c.merge});
}

TEST_CASE("loops nest, parents before children") {
  Nested g;
  const FrameMap frames = must(FrameMap::build(g.graph));
  REQUIRE(frames.frames().size() == 3);
  const StaticFrame& outer = frames.frames()[1];
  const StaticFrame& inner = frames.frames()[2];
  CHECK(outer.name == "outer");
  CHECK(inner.name == "inner");
  CHECK(inner.parent == outer.id);
  CHECK(inner.depth == 2);
  CHECK(frames.of(*g.inner.enter) == outer.id);
  CHECK(frames.output_of(*g.inner.exit) == outer.id);
  CHECK(frames.is_within(inner.id, outer.id));
  CHECK(frames.is_within(inner.id, FrameId::kRoot));
  CHECK(frames.is_within(outer.id, outer.id));
  CHECK_FALSE(frames.is_within(outer.id, inner.id));
}

TEST_CASE("the first Enter's parallel_iterations holds, others are warned of") {
  Ground g;
  g.enter("a", g.zero, "loop", 4);
  g.enter("b", g.zero, "loop", 2);
  g.enter("c", g.zero, "loop", 4);
  const FrameMap frames = must(FrameMap::build(g.graph));
  CHECK(frames.frames()[1].parallel_iterations == 4);
  REQUIRE(frames.warnings().size() == 1);
  CHECK(frames.warnings()[0] ==
        "[Enter] node \"b\": it asks for parallel_iterations = 2 of frame "
        "\"loop\", whose first Enter asks for 4, which is used");
}

TEST_CASE("inputs from a loop and from outside are refused with advice") {
  Ground g;
  Node* enter = g.enter("enter", g.zero, "loop");
  add(g.graph, "sum", "AddV2", {{enter, 0}, {g.nine, 0}});
  CHECK(g.refusal() ==
        "[AddV2] node \"sum\": input 0 (\"enter:0\") is in frame \"loop\", but "
        "input 1 (\"nine:0\") is in the root frame; bring \"nine\" into frame "
        "\"loop\" by an Enter with is_constant = true, or take \"enter\" out "
        "by an Exit");
}

TEST_CASE("inputs from two loops are refused with advice") {
  Ground g;
  Node* a = g.enter("a", g.zero, "one");
  Node* b = g.enter("b", g.zero, "two");
  add(g.graph, "sum", "AddV2", {{a, 0}, {b, 0}});
  CHECK(g.refusal() ==
        "[AddV2] node \"sum\": input 0 (\"a:0\") is in frame \"one\", but "
        "input 1 (\"b:0\") is in frame \"two\"; neither is inside the other: "
        "take \"b\" out of frame \"two\" by an Exit");
}

TEST_CASE("a control edge across frames is refused like a data edge") {
  Ground g;
  Node* enter = g.enter("enter", g.zero, "loop");
  add(g.graph, "y", "Identity", {{enter, 0}}, {}, {g.nine});
  CHECK(contains(g.refusal(),
                 "control input \"^nine\" is in the root frame; bring"));
}

TEST_CASE("a back edge into another loop is refused") {
  Ground g;
  Node* a = g.enter("a", g.zero, "one");
  Node* b = g.enter("b", g.zero, "two");
  Node* merge = add(g.graph, "merge", "Merge", {{a, 0}, {}});
  Node* next = add(g.graph, "next", "NextIteration", {{b, 0}});
  must(g.graph.set_input(merge, 1, {next, 0}));
  CHECK(g.refusal() ==
        "[Merge] node \"merge\": the back edge from \"next:0\" comes from "
        "frame \"two\", the Merge is in frame \"one\"; a NextIteration leads "
        "to a Merge of its own loop");
}

TEST_CASE("an Exit and a NextIteration need a loop") {
  Ground g;
  add(g.graph, "exit", "Exit", {{g.zero, 0}});
  CHECK(g.refusal() ==
        "[Exit] node \"exit\": it is in no loop; its input must lead back to "
        "an Enter");
  Ground h;
  add(h.graph, "next", "NextIteration", {{h.zero, 0}});
  CHECK(h.refusal() ==
        "[NextIteration] node \"next\": it is in no loop; its input must lead "
        "back to an Enter");
}

TEST_CASE("a Merge of back edges only can never start") {
  Ground g;
  Node* merge = must(g.graph.add("merge", "Merge", std::vector<Endpoint>{{}},
                                 {{"T", DataType::kInt32}}));
  Node* next = add(g.graph, "next", "NextIteration", {{merge, 0}});
  must(g.graph.set_input(merge, 0, {next, 0}));
  CHECK(g.refusal() ==
        "[Merge] node \"merge\": all inputs are back edges, so nothing can "
        "ever arrive; one must come from an Enter of the loop");
}

TEST_CASE("a frame cannot be entered from two frames") {
  Ground g;
  Node* outer = g.enter("outer", g.zero, "one");
  g.enter("a", g.zero, "two");
  g.enter("b", outer, "two");
  CHECK(g.refusal() ==
        "[Enter] node \"b\": it enters frame \"two\" from frame \"one\", "
        "another Enter of that frame from the root frame; a loop has one "
        "parent: give each loop a frame_name of its own, or enter loop by "
        "loop");
}

TEST_CASE("a frame needs a name and at least one iteration") {
  Ground g;
  g.enter("a", g.zero, "");
  CHECK(g.refusal() ==
        "[Enter] node \"a\": the attribute \"frame_name\" is empty");
  Ground h;
  h.enter("a", h.zero, "loop", 0);
  CHECK(h.refusal() ==
        "[Enter] node \"a\": the attribute \"parallel_iterations\" is 0, at "
        "least 1 is wanted");
}

TEST_CASE("the depth of loops is bounded") {
  Ground g;
  Node* node = g.zero;
  for (int depth = 1; depth <= 5; ++depth)
    node = g.enter("enter" + std::to_string(depth), node,
                   "frame" + std::to_string(depth));
  Limits limits;
  limits.max_frame_depth = 5;
  CHECK(must(FrameMap::build(g.graph, limits)).frames().size() == 6);
  limits.max_frame_depth = 4;
  CHECK(message_of(FrameMap::build(g.graph, limits).status(),
                   Code::kResourceExhausted) ==
        "[Enter] node \"enter5\": frame \"frame5\" is 5 loops deep, the limit "
        "is 4");
}

TEST_CASE("an open back edge and a loop without predicate have frames") {
  Ground g;
  Node* enter = g.enter("enter", g.zero, "loop");
  Node* merge = add(g.graph, "merge", "Merge", {{enter, 0}, {}});
  const FrameMap frames = must(FrameMap::build(g.graph));
  CHECK(frames.of(*merge) == frames.frames()[1].id);
  CHECK(frames.frames()[1].loop_conds.empty());
}
