#include "graph/partition/readers_first.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "graph/builder/builder.h"
#include "graph/partition/recv_schedule.h"
#include "tests/graph/partition/cut.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

const AttrMap kInts{{"element_dtype", DataType::kInt32}};

// Lists made by hand; names say what a node is.
struct Lists {
  Node* shape(const std::string& name) {
    return constant(graph, name, Tensor::make(DataType::kInt32, {0}));
  }
  Node* list(const std::string& name) {
    return add(graph, name, "TensorListReserve",
               {{shape(name + "/shape"), 0}, {zero, 0}}, kInts);
  }
  Node* read(const std::string& name, Endpoint list, Endpoint index) {
    return add(graph, name, "TensorListGetItem", {list, index, {any_shape, 0}},
               kInts);
  }
  Node* write(const std::string& name, Endpoint list, Endpoint index) {
    return add(graph, name, "TensorListSetItem", {list, index, {zero, 0}});
  }
  Node* length(const std::string& name, Endpoint list) {
    return add(graph, name, "TensorListLength", {list});
  }

  Graph graph;
  Node* zero = constant(graph, "zero", Tensor::scalar(0));
  Node* any_shape = shape("shape");
};

std::string turns_of(const Program& program) {
  std::vector<std::string> lines;
  for (const OrderEdge& turn : program.order_edges)
    lines.push_back(turn.first->name() + " < " + turn.then->name());
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// The turns of a program on one device.
std::string turns(const Graph& graph,
                  const std::function<bool(const Node&)>& may_wait = {}) {
  std::vector<Partition> parts(1);
  parts[0].program.graph = graph.clone();
  must(validate(graph));
  ReadersFirstOptions options{must(find_odd_frames(parts[0].program)),
                              may_wait};
  must(put_readers_first(parts, options));
  return turns_of(parts[0].program);
}

// A loop whose body reads a list and writes to it.
struct ListLoop : Lists {
  ListLoop() {
    const AttrMap frame = {{"frame_name", "l"}};
    enter = add(graph, "enter", "Enter", {{list("a"), 0}}, frame);
    merge = add(graph, "merge", "Merge", {{enter, 0}, {}});
    branch = add(graph, "switch", "Switch", {{merge, 0}, {counter.cond, 0}});
    body = add(graph, "body", "Identity", {{branch, 1}});
    written = write("write", {body, 0}, {counter.body, 0});
    read("read", {body, 0}, {counter.body, 0});
    next = add(graph, "next", "NextIteration", {{written, 0}});
    must(graph.set_input(merge, 1, {next, 0}));
    zero = add(graph, "l/zero", "Enter", {{zero, 0}},
               {{"frame_name", "l"}, {"is_constant", true}});
    must(graph.set_input(written, 2, {zero, 0}));
    any_shape = add(graph, "l/shape", "Enter", {{any_shape, 0}},
                    {{"frame_name", "l"}, {"is_constant", true}});
    must(graph.set_input(graph.find("read"), 2, {any_shape, 0}));
  }

  Node* limit = constant(graph, "limit", Tensor::scalar(3));
  Counter counter = testing::counter(graph, "l", {zero, 0}, {limit, 0});
  Node *enter, *merge, *branch, *body, *written, *next;
};

}  // namespace

TEST_CASE("readers first: all readers of a list go before its writer") {
  Lists l;
  Node* a = l.list("a");
  l.write("write", {a, 0}, {l.zero, 0});
  l.read("read", {a, 0}, {l.zero, 0});
  l.length("length", {a, 0});
  CHECK(turns(l.graph) == "length < write\nread < write\n");
}

TEST_CASE("readers first: a list is followed through Switch and Merge") {
  Lists l;
  Node* a = l.list("a");
  Node* p = placeholder(l.graph, "p", DataType::kBool);
  Node* branch = add(l.graph, "switch", "Switch", {{a, 0}, {p, 0}});
  Node* then = add(l.graph, "then", "Identity", {{branch, 1}});
  Node* merge = add(l.graph, "merge", "Merge", {{branch, 0}, {then, 0}});
  Node* many = add(l.graph, "many", "IdentityN", {{merge, 0}, {p, 0}});
  l.length("one", {branch, 1});
  l.length("two", {then, 0});
  l.length("three", {many, 0});
  l.write("write", {a, 0}, {l.zero, 0});
  CHECK(turns(l.graph) == "one < write\nthree < write\ntwo < write\n");
}

TEST_CASE("readers first: a reader that fires before the writer has no turn") {
  Lists l;
  Node* a = l.list("a");
  l.write("write", {a, 0}, {l.length("length", {a, 0}), 0});
  CHECK(turns(l.graph) == "");
}

TEST_CASE("readers first: a reader of a writer's result does not go first") {
  Lists l;
  Node* a = l.list("a");
  Node* written = l.write("write", {a, 0}, {l.zero, 0});
  l.read("read", {a, 0}, {l.length("length", {written, 0}), 0});
  CHECK(turns(l.graph) == "");
}

TEST_CASE("readers first: turns of several lists agree with one order") {
  // Each reader's index comes of the other list's writer.
  Lists l;
  Node* a = l.list("a");
  Node* b = l.list("b");
  Node* new_a = l.write("write_a", {a, 0}, {l.zero, 0});
  Node* new_b = l.write("write_b", {b, 0}, {l.zero, 0});
  l.read("read_b", {b, 0}, {l.length("length_a", {new_a, 0}), 0});
  l.read("read_a", {a, 0}, {l.length("length_b", {new_b, 0}), 0});
  CHECK(turns(l.graph) == "read_b < write_b\n");
}

TEST_CASE("readers first: a writer goes first if its own readers allow it") {
  // Were b written first, the reader of a that waits for it could not come.
  Lists l;
  Node* b = l.list("b");
  Node* a = l.list("a");
  Node* new_b = l.write("write_b", {b, 0}, {l.zero, 0});
  Node* new_a = l.write("write_a", {a, 0}, {l.zero, 0});
  l.read("read_b", {b, 0}, {l.length("length_a", {new_a, 0}), 0});
  l.length("length_b", {new_b, 0});
  l.length("first", {a, 0});
  CHECK(turns(l.graph) == "first < write_a\nread_b < write_b\n");
}

TEST_CASE("readers first: a loop holds a list that enters it until its end") {
  Lists l;
  Node* limit = constant(l.graph, "limit", Tensor::scalar(3));
  Node* a = l.list("a");
  const Counter loop = counter(l.graph, "l", {l.zero, 0}, {limit, 0});
  Node* enter = add(l.graph, "l/a", "Enter", {{a, 0}},
                    {{"frame_name", "l"}, {"is_constant", true}});
  Node* shape = add(l.graph, "l/shape", "Enter", {{l.any_shape, 0}},
                    {{"frame_name", "l"}, {"is_constant", true}});
  add(l.graph, "l/read", "TensorListGetItem",
      {{enter, 0}, {loop.body, 0}, {shape, 0}}, kInts);
  SUBCASE("beside it") {
    l.write("write", {a, 0}, {l.zero, 0});
    CHECK(turns(l.graph) == "l/a < write\n");
  }
  SUBCASE("after it") {
    l.write("write", {a, 0}, {loop.exit, 0});
    CHECK(turns(l.graph) == "l/a < write\n");
  }
  SUBCASE("before it") {
    Node* written = l.write("write", {a, 0}, {l.zero, 0});
    must(l.graph.set_input(loop.limit, 0, {l.length("length", {written, 0})}));
    CHECK(turns(l.graph) == "");
  }
}

TEST_CASE("readers first: in a loop readers go first in each iteration") {
  CHECK(turns(ListLoop().graph) == "read < write\n");
}

TEST_CASE("readers first: a loop with iterations that lack tokens has none") {
  // The list goes on where a condition of its own says so.
  ListLoop odd;
  Node* own = add(odd.graph, "own", "Less",
                  {{odd.counter.body, 0}, {odd.counter.add, 0}});
  Node* maybe = add(odd.graph, "maybe", "Switch", {{odd.written, 0}, {own, 0}});
  must(odd.graph.set_input(odd.next, 0, {maybe, 1}));
  CHECK(turns(odd.graph) == "");
}

TEST_CASE("readers first: no writer waits for a reader that may never run") {
  const auto turns_where = [](const Lists& lists, std::string_view waits) {
    return turns(lists.graph,
                 [waits](const Node& node) { return node.name() == waits; });
  };
  Lists l;
  Node* a = l.list("a");
  Node* index = add(l.graph, "index", "Identity", {{l.zero, 0}});
  l.write("write", {a, 0}, {l.zero, 0});
  l.read("read", {a, 0}, {index, 0});
  CHECK(turns_where(l, "none") == "read < write\n");
  CHECK(turns_where(l, "index") == "");
  CHECK(turns_where(l, "read") == "");
  // The writer needs the list, too.
  CHECK(turns_where(l, "a") == "read < write\n");
  // In the iteration before, too.
  ListLoop loop;
  CHECK(turns_where(loop, "l/add") == "");
}

TEST_CASE("a Recv that is scheduled late knows of turns") {
  // y is read, late, by who goes before the writer of a, whose result another
  // device needs to make y: as in time, so not after the writer.
  Lists l;
  Node* a = l.list("a");
  Node* x = placeholder(l.graph, "x", DataType::kInt32);
  Node* far = add(l.graph, "far", "Neg", {{x, 0}});
  Node* read = l.read("read", {a, 0}, {far, 0});
  Node* last = l.write("write", {a, 0}, {l.zero, 0});
  Node* length = l.length("length", {last, 0});
  for (int i = 0; i < 10; ++i)
    length = add(l.graph, "n" + std::to_string(i), "Neg", {{length, 0}});
  add(l.graph, "sum", "AddV2", {{read, 0}, {length, 0}});
  Cut cut(program_of(l.graph, {"sum"}, {}, {"x"}), {{"far", 1}, {"x", 1}},
          cpus(2));
  must(put_readers_first(cut.parts, {}));
  CHECK(turns_of(cut.on(0)) == "read < write\n");
  must(schedule_recvs(cut.parts, {.cost = {}, .min_delay = 0, .min_bytes = 0}));
  // Of what is on its device nothing is done when the writer has to wait.
  CHECK(cut.line(0, "far/recv") == "far/recv = _Recv()");
}

TEST_CASE("readers first: turns are given to nodes of one device only") {
  Lists l;
  Node* a = l.list("a");
  Node* written = l.write("write", {a, 0}, {l.zero, 0});
  Node* here = l.read("here", {a, 0}, {l.zero, 0});
  Node* there = l.read("there", {a, 0}, {l.zero, 0});
  Node* sum = add(l.graph, "sum", "AddV2", {{here, 0}, {there, 0}});
  add(l.graph, "all", "AddV2",
      {{sum, 0}, {l.length("length", {written, 0}), 0}});
  Cut cut(program_of(l.graph, {"all"}), {{"there", 1}}, cpus(2));
  must(put_readers_first(cut.parts, {}));
  // The list is sent to the other device; that is a reader, too.
  CHECK(turns_of(cut.on(0)) == "a/send < write\nhere < write\n");
  CHECK(turns_of(cut.on(1)) == "");
}

TEST_CASE("readers first: bodies have turns of their own") {
  // The program calls a body which reads a list and writes to it.
  std::vector<Partition> parts(1);
  Program& program = parts[0].program;
  Lists outside;
  Node* index = add(outside.graph, "call", "_Call", {{outside.zero, 0}},
                    {{"f", FunctionRef{"body", {}}},
                     {"body", int64_t(0)},
                     {"Tin", std::vector{DataType::kInt32}},
                     {"Tout", std::vector{DataType::kInt32}}});
  Node* a = outside.list("a");
  outside.read("read", {a, 0}, {index, 0});
  outside.write("write", {a, 0}, {outside.zero, 0});
  program.graph = std::move(outside.graph);
  Lists inside;
  Node* b = inside.list("b");
  Node* element = inside.read("in_read", {b, 0}, {inside.zero, 0});
  inside.write("in_write", {b, 0}, {inside.zero, 0});
  auto body = std::make_unique<Program>();
  body->name = "body";
  body->graph = std::move(inside.graph);
  body->fetches = {{element, 0}};
  program.bodies.push_back(std::move(body));
  SUBCASE("all answer at once") {
    must(put_readers_first(parts, {}));
    CHECK(turns_of(program) == "read < write\n");
    CHECK(turns_of(*program.bodies[0]) == "in_read < in_write\n");
  }
  SUBCASE("nobody waits for a call in which somebody may never answer") {
    must(put_readers_first(parts,
                           {.odd_frames = {}, .may_wait = [](const Node& node) {
                              return node.name() == "in_read";
                            }}));
    CHECK(turns_of(program) == "");
    CHECK(turns_of(*program.bodies[0]) == "");
  }
}
