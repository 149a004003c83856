#include "graph/partition/presence.h"

#include <doctest/doctest.h>

#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

struct Loop {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Counter loop = counter(graph, "l", {x, 0}, {x, 0});

  Presence of(const Node* node) const { return map().of(*node); }
  Presence of_frame(const std::string& name) const {
    const FrameMap frames = must(FrameMap::build(graph));
    for (const StaticFrame& frame : frames.frames())
      if (frame.name == name) return map().of_frame(frame.id);
    FAIL("no frame ", name);
    return Presence::kNever;
  }
  PresenceMap map() const {
    return must(PresenceMap::build(graph, must(FrameMap::build(graph))));
  }
};

}  // namespace

TEST_CASE("a loop's nodes are there in all iterations") {
  const Loop l;
  for (const Node* node : {l.loop.limit, l.loop.merge, l.loop.less, l.loop.cond,
                           l.loop.branch, l.loop.body, l.loop.add})
    CHECK(l.of(node) == Presence::kAlways);
  CHECK(l.of(l.loop.enter) == Presence::kFirst);
  CHECK(l.of(l.loop.next) == Presence::kLater);
}

TEST_CASE("a node is there where all its inputs are, a Merge where one is") {
  Loop l;
  const auto sum = [&](const std::string& name, const char* op, Node* a,
                       Node* b) {
    return add(l.graph, name, op, {{a, 0}, {b, 0}});
  };
  Node* first = sum("first", "AddV2", l.loop.enter, l.loop.limit);
  Node* later = sum("later", "AddV2", l.loop.next, l.loop.merge);
  CHECK(l.of(first) == Presence::kFirst);
  CHECK(l.of(later) == Presence::kLater);
  CHECK(l.of(sum("never", "AddV2", first, later)) == Presence::kNever);
  CHECK(l.of(sum("any", "Merge", first, later)) == Presence::kAlways);
  CHECK(l.of(add(l.graph, "after", "Neg", {{l.loop.merge, 0}}, {}, {later})) ==
        Presence::kLater);
}

TEST_CASE("a frame without back edges has one iteration") {
  Loop l;
  const AttrMap frame{{"frame_name", "once"}, {"is_constant", true}};
  Node* enter = add(l.graph, "enter", "Enter", {{l.x, 0}}, frame);
  Node* neg = add(l.graph, "neg", "Neg", {{enter, 0}});
  CHECK(l.of(enter) == Presence::kFirst);
  CHECK(l.of(neg) == Presence::kFirst);
  CHECK(l.of(l.x) == Presence::kFirst);
}

TEST_CASE("a frame is entered in the iterations that all its Enters are in") {
  Loop l;
  const Counter inner =
      counter(l.graph, "i", {l.loop.enter, 0}, {l.loop.limit, 0});
  counter(l.graph, "j", {l.loop.body, 0}, {l.loop.limit, 0});
  CHECK(l.of_frame("i") == Presence::kFirst);
  CHECK(l.of_frame("j") == Presence::kAlways);
  CHECK(l.of(inner.merge) == Presence::kAlways);
  CHECK(l.of(inner.exit) == Presence::kFirst);
}
