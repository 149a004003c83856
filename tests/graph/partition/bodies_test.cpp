// Bodies of recursive functions, which run whole wherever they are called.
#include <doctest/doctest.h>

#include "tests/graph/partition/cut.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

AttrMap call_attrs(const std::string& function, int64_t body) {
  const std::vector<DataType> types{DataType::kInt32};
  return {{"f", FunctionRef{function, {}}},
          {"body", body},
          {"Tin", types},
          {"Tout", types}};
}

// A body that calls another, or negates.
std::unique_ptr<Program> body(const std::string& name, int64_t calls = -1) {
  auto made = std::make_unique<Program>();
  made->name = name;
  Node* arg = placeholder(made->graph, "arg", DataType::kInt32);
  Node* result = calls < 0 ? add(made->graph, "result", "Neg", {{arg, 0}})
                           : add(made->graph, "result", "_Call", {{arg, 0}},
                                 call_attrs("f", calls));
  made->feeds = {{arg, 0}};
  made->fetches = {{result, 0}};
  return made;
}

// c calls body 2, which calls body 0; d calls body 1; there is a body 3 too.
Program calling() {
  Program program;
  Node* x = placeholder(program.graph, "x", DataType::kInt32);
  Node* c = add(program.graph, "c", "_Call", {{x, 0}}, call_attrs("two", 2));
  Node* d = add(program.graph, "d", "_Call", {{x, 0}}, call_attrs("one", 1));
  Node* sum = add(program.graph, "sum", "AddV2", {{c, 0}, {d, 0}});
  program.feeds = {{x, 0}};
  program.fetches = {{sum, 0}};
  program.bodies.push_back(body("zero"));
  program.bodies.push_back(body("one"));
  program.bodies.push_back(body("two", 0));
  program.bodies.push_back(body("three"));
  return program;
}

std::string bodies_of(const Program& program) {
  std::string all;
  for (const auto& body : program.bodies) all += body->name + " ";
  return all;
}

}  // namespace

TEST_CASE("a partition has the bodies that it calls, and that those call") {
  const Cut cut(calling(), {{"c", 1}, {"d", 2}}, cpus(3));
  CHECK(bodies_of(cut.on(0)) == "");
  CHECK(bodies_of(cut.on(1)) == "two zero ");
  CHECK(bodies_of(cut.on(2)) == "one ");
  CHECK(must(cut.node(1, "c").attr<int64_t>("body")) == 0);
  CHECK(must(cut.node(2, "d").attr<int64_t>("body")) == 0);
  const Program& two = *cut.on(1).bodies[0];
  CHECK(must(two.fetches[0].node->attr<int64_t>("body")) == 1);
  for (const auto& body : cut.on(1).bodies) {
    must(validate(body->graph));
    CHECK(body->graph.owns(body->feeds[0].node));
    CHECK(body->graph.owns(body->fetches[0].node));
  }
}

TEST_CASE("each partition that calls a body has a copy of its own") {
  const Cut cut(calling(), {{"c", 1}, {"d", 1}}, cpus(2));
  CHECK(bodies_of(cut.on(1)) == "two one zero ");
  CHECK(must(cut.node(1, "d").attr<int64_t>("body")) == 1);
}

TEST_CASE("a result of a call does not say whether the call is dead") {
  Program program = calling();
  Node* c = program.graph.find("c");
  Node* after = add(program.graph, "after", "Neg", {program.feeds[0]}, {}, {c});
  program.targets.push_back(after);
  const Cut cut(std::move(program), {{"c", 1}}, cpus(2));
  CHECK(cut.line(0, "sum") == "sum = AddV2(c/recv, d)");
  CHECK(cut.line(0, "after") == "after = Neg(x, ^c/control/recv)");
}
