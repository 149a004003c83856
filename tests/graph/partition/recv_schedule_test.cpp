#include "graph/partition/recv_schedule.h"

#include <doctest/doctest.h>

#include "tests/graph/partition/cut.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

Node* chain(Graph& graph, const std::string& name, Endpoint from, int length) {
  Node* last = from.node;
  for (int i = 0; i < length; ++i)
    last = add(graph, name + std::to_string(i), "Neg",
               {{last, i == 0 ? from.port : 0}});
  return last;
}

// x is read late: after a chain of ten on the device that it is sent to.
struct Late {
  Late(PartialShape shape = {}) {
    Node* x = placeholder(graph, "x", DataType::kFloat, shape);
    Node* y = placeholder(graph, "y", DataType::kFloat, shape);
    add(graph, "sum", "AddV2", {{chain(graph, "n", {y, 0}, 10), 0}, {x, 0}});
  }
  Cut cut(const Places& places) const {
    return {program_of(graph, {"sum"}, {}, {"x", "y"}), places, cpus(3)};
  }
  Graph graph;
};

const Places kLatePlaces = {{"n", 1}, {"sum", 1}};

size_t schedule(Cut& cut, const RecvScheduleOptions& options = {}) {
  const size_t count = must(schedule_recvs(cut.parts, options));
  for (const Partition& part : cut.parts) must(validate(part.program.graph));
  return count;
}

}  // namespace

TEST_CASE("Recv schedule: a tensor that is read late is asked for late") {
  Cut cut = Late().cut(kLatePlaces);
  CHECK(schedule(cut) == 1);
  CHECK(cut.line(1, "x/recv") == "x/recv = _Recv(^n7/done)");
  CHECK(cut.line(1, "n7/done") == "n7/done = ControlTrigger(^n7)");
  CHECK(cut.node(1, "n7/done").device() == cut.node(1, "n7").device());
  // What is read first is asked for at once.
  CHECK(cut.line(1, "y/recv") == "y/recv = _Recv()");
}

TEST_CASE("a Recv that takes long starts early enough") {
  Cut cut = Late().cut(kLatePlaces);
  RecvScheduleOptions options;
  options.cost = [](const Node& node) -> int64_t {
    return node.op() == "_Recv" ? 4 : -1;
  };
  CHECK(schedule(cut, options) == 1);
  CHECK(cut.line(1, "x/recv") == "x/recv = _Recv(^n4/done)");
}

TEST_CASE("Recv schedule: a short delay or a small tensor changes nothing") {
  const auto count = [](const PartialShape& shape,
                        const RecvScheduleOptions& options) {
    Cut cut = Late(shape).cut(kLatePlaces);
    return schedule(cut, options);
  };
  CHECK(count({}, {.cost = {}, .min_delay = 100}) == 0);
  CHECK(count(PartialShape({1023}), {}) == 0);
  CHECK(count(PartialShape({1024}), {}) == 1);
  CHECK(count(PartialShape({1023}),
              {.cost = {}, .min_delay = 4, .min_bytes = 0}) == 1);
}

TEST_CASE("Recv schedule: a Recv does not wait for a node that waits for it") {
  // What device 1 does late depends on what device 2 makes of x there.
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* first = add(graph, "first", "Neg", {{x, 0}});
  Node* away = chain(graph, "away", {first, 0}, 10);
  Node* back = chain(graph, "back", {away, 0}, 10);
  add(graph, "sum", "AddV2", {{back, 0}, {x, 0}});
  Cut cut(program_of(graph, {"sum"}, {}, {"x"}),
          {{"first", 1}, {"away", 2}, {"back", 1}, {"sum", 1}}, cpus(3));
  CHECK(schedule(cut) == 0);
}

TEST_CASE("Recv schedule: two devices do not hold back each other") {
  // Each has a long chain, and reads late what the other makes early or late.
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  for (const std::string side : {"a", "b"}) chain(graph, side, {x, 0}, 12);
  add(graph, "sum_a", "AddV2",
      {{graph.find("a11"), 0}, {graph.find("b11"), 0}});
  add(graph, "sum_b", "AddV2",
      {{graph.find("b11"), 0}, {graph.find("a11"), 0}});
  add(graph, "early_a", "AddV2",
      {{graph.find("a11"), 0}, {graph.find("b0"), 0}});
  add(graph, "early_b", "AddV2",
      {{graph.find("b11"), 0}, {graph.find("a0"), 0}});
  Cut cut(
      program_of(graph, {"sum_a", "sum_b", "early_a", "early_b"}, {}, {"x"}),
      {{"b", 1}, {"sum_b", 1}, {"early_b", 1}}, cpus(2));
  CHECK(schedule(cut) == 2);
  CHECK(cut.line(0, "b0/recv") == "b0/recv = _Recv(^a11/done)");
  CHECK(cut.line(1, "a0/recv") == "a0/recv = _Recv(^b11/done)");
}

TEST_CASE("Recv schedule: a loop's own variables are not held back") {
  // Here the long way is outside the loop.
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* n = placeholder(graph, "n", DataType::kInt32);
  const Counter loop = counter(graph, "l", {x, 0}, {n, 0});
  Node* slow = chain(graph, "slow", {x, 0}, 100);
  add(graph, "sum", "AddV2", {{slow, 0}, {loop.exit, 0}});
  Cut cut(program_of(graph, {"sum"}, {}, {"x", "n"}),
          {{"l/body", 1}, {"l/less", 1}}, cpus(2));
  RecvScheduleOptions options;
  options.min_bytes = 0;
  options.min_delay = 1;
  CHECK(schedule(cut, options) == 0);
}

TEST_CASE("Recv schedule: a Recv in a loop is held back in each iteration") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* n = placeholder(graph, "n", DataType::kInt32);
  const Counter loop = counter(graph, "l", {x, 0}, {n, 0});
  Node* far = add(graph, "l/far", "Square", {{loop.body, 0}});
  Node* near = chain(graph, "l/near", {loop.body, 0}, 10);
  Node* sum = add(graph, "l/sum", "AddV2", {{near, 0}, {far, 0}});
  must(graph.set_input(loop.add, 0, {sum, 0}));
  Cut cut(program_of(graph, {"l/exit"}, {}, {"x", "n"}), {{"l/far", 1}},
          cpus(2));
  RecvScheduleOptions options;
  options.min_bytes = 0;
  CHECK(schedule(cut, options) == 1);
  CHECK(cut.line(0, "l/far/recv") ==
        "l/far/recv = _Recv(^l/enter/control_loop/Merge, ^l/near7/done)");
}

TEST_CASE("Recv schedule: a Recv does not wait for an Exit that waits for it") {
  // The first iteration can be done without what device 1 sends, by the edges
  // that go forwards; the loop cannot.
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* n = placeholder(graph, "n", DataType::kInt32);
  Node* far = add(graph, "far", "Neg", {{x, 0}});
  Node* here = add(graph, "here", "Square", {{far, 0}});
  const Counter loop = counter(graph, "l", {x, 0}, {n, 0});
  Node* enter = add(graph, "l/here", "Enter", {{here, 0}},
                    {{"frame_name", "l"}, {"is_constant", true}});
  Node* slow = chain(graph, "l/slow", {loop.body, 0}, 20);
  Node* sum = add(graph, "l/sum", "AddV2", {{slow, 0}, {enter, 0}});
  must(graph.set_input(loop.add, 0, {sum, 0}));
  chain(graph, "after", {loop.exit, 0}, 40);
  Cut cut(program_of(graph, {"after39"}, {}, {"x", "n"}), {{"far", 1}},
          cpus(2));
  CHECK(schedule(cut) == 0);
  CHECK(cut.line(0, "far/recv") == "far/recv = _Recv()");
}

TEST_CASE("Recv schedule: a Recv does not wait for stateful nodes") {
  // It may itself wait, for somebody who waits for what is received.
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  Node* effect = add(graph, "effect", "Print", {{y, 0}, {y, 0}});
  add(graph, "sum", "AddV2", {{chain(graph, "n", {effect, 0}, 10), 0}, {x, 0}});
  Cut cut(program_of(graph, {"sum"}, {}, {"x", "y"}), kLatePlaces, cpus(2));
  CHECK(schedule(cut) == 0);
}

TEST_CASE("Recv schedule: a Recv does not wait for an earlier iteration") {
  for (const char* op : {"Identity", "GuaranteeConst"}) {
    Graph graph;
    Node* x = placeholder(graph, "x", DataType::kInt32);
    Node* n = placeholder(graph, "n", DataType::kInt32);
    const Counter loop = counter(graph, "l", {x, 0}, {n, 0});
    Node* far = add(graph, "l/far", "Square", {{loop.body, 0}});
    Node* near = chain(graph, "l/near", {loop.body, 0}, 10);
    Node* sum = add(graph, "l/sum", "AddV2", {{near, 0}, {far, 0}});
    Node* effect = add(graph, "l/effect", op, {{sum, 0}});
    must(graph.set_input(loop.add, 0, {effect, 0}));
    Cut cut(program_of(graph, {"l/exit"}, {}, {"x", "n"}), {{"l/far", 1}},
            cpus(2));
    RecvScheduleOptions options;
    options.min_bytes = 0;
    CHECK(schedule(cut, options) == (op == std::string("Identity") ? 1 : 0));
  }
}

TEST_CASE("a frame that depends on its own end is left alone") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* first = add(graph, "e", "Enter", {{x, 0}}, {{"frame_name", "f"}});
  Node* exit = add(graph, "out", "Exit", {{first, 0}});
  Node* again =
      add(graph, "again", "Enter", {{exit, 0}}, {{"frame_name", "f"}});
  Node* slow = chain(graph, "n", {x, 0}, 10);
  Node* last = add(graph, "last", "Exit", {{again, 0}});
  add(graph, "sum", "AddV2", {{slow, 0}, {last, 0}});
  Cut cut(program_of(graph, {"sum"}, {}, {"x"}), {{"n", 1}, {"sum", 1}},
          cpus(2));
  CHECK(schedule(cut) == 0);
}
