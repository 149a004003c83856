// Calls in frames of their own, and functions that extend others.
#include "graph/functions/extended.h"

#include "tests/graph/functions/lowered.h"

namespace tagflow::graph::testing {
namespace {

// again(n) = again(n) + 1, and "more", which gives n as well.
void define(Lowered& l) {
  l.define(function("again", {"n: int32"}, {"r: int32"},
                    {body_node("call", "again", {"n"}),
                     body_int("plus", "Add", "call:r:0", "n")},
                    {{"r", "plus:z:0"}}));
  FunctionDef more = function("more", {"n: int32"}, {"r: int32", "m: int32"},
                              {body_node("call", "again", {"n"}),
                               body_int("plus", "Add", "call:r:0", "n"),
                               body_int("more", "Add", "n", "n")},
                              {{"r", "plus:z:0"}, {"m", "more:z:0"}});
  more.attrs[std::string(kExtendsAttr)] = FunctionRef{"again", {}};
  l.define(std::move(more));
}

NodeDef own_call(const std::string& function, int64_t results) {
  return body_node("y", "PartitionedCall", {"x"},
                   {{"f", FunctionRef{function, {}}},
                    {"Tin", std::vector{kInt}},
                    {"Tout", std::vector<DataType>(size_t(results), kInt)},
                    {std::string(kOwnFrameAttr), true}});
}

NodeDef sum_of(const std::string& tensor) {
  return body_node("z", "Neg", {tensor});
}

}  // namespace

TEST_CASE("a call with a frame of its own keeps its name") {
  Lowered l;
  define(l);
  l.expect_lowered({placeholder("x"), own_call("again", 1), sum_of("y")}, "z");
  CHECK(l.node("y").op() == "_Call");
  REQUIRE(l.program.bodies.size() == 1);
  CHECK(l.program.bodies[0]->name == "again");
}

TEST_CASE("an extended function computes only outputs that are read") {
  Lowered l;
  define(l);
  l.expect_lowered({placeholder("x"), own_call("more", 2), sum_of("y:0")}, "z");
  CHECK(l.node("y").num_outputs() == 1);
  REQUIRE(l.program.bodies.size() == 1);
  CHECK(l.program.bodies[0]->name == "again");
}

TEST_CASE("the nodes of an extended function have the names of the other one") {
  Lowered l;
  define(l);
  l.expect_lowered({placeholder("x"), own_call("more", 2), sum_of("y:1")}, "z");
  CHECK(l.node("y").num_outputs() == 2);
  REQUIRE(l.program.bodies.size() == 2);
  const Program& body = *l.program.bodies[0];
  CHECK(body.name == "more");
  CHECK(body.graph.find("again/plus") != nullptr);
  CHECK(body.graph.find("again/more") != nullptr);
}

TEST_CASE("a function that does not fit what it extends is refused") {
  Lowered l;
  l.define(function("other", {"x: float"}, {"r: float"}, {}, {{"r", "x"}}));
  FunctionDef more = function("more", {"n: int32"}, {"r: int32", "m: int32"},
                              {}, {{"r", "n"}, {"m", "n"}});
  more.attrs[std::string(kExtendsAttr)] = FunctionRef{"other", {}};
  l.define(std::move(more));
  l.program.graph.library() = l.library;
  l.expect_refused({placeholder("x"), own_call("more", 2)},
                   Code::kInvalidArgument,
                   "[PartitionedCall] node \"y\": function \"more\" extends "
                   "\"other\", which has other arguments or results");
}

TEST_CASE("functions that extend one another in a circle are called as named") {
  Lowered l;
  for (const auto& [name, extended] :
       {std::pair("a", "b"), std::pair("b", "a")}) {
    FunctionDef f = function(name, {"n: int32"}, {"r: int32", "m: int32"}, {},
                             {{"r", "n"}, {"m", "n"}});
    f.attrs[std::string(kExtendsAttr)] = FunctionRef{extended, {}};
    l.define(std::move(f));
  }
  l.expect_lowered({placeholder("x"), own_call("a", 2), sum_of("y:0")}, "z");
  REQUIRE(l.program.bodies.size() == 1);
  CHECK(l.program.bodies[0]->name == "a");
}

}  // namespace tagflow::graph::testing
