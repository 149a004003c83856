#include "actors/handle_uses.h"

#include <doctest/doctest.h>

#include <set>

#include "graph/builder/builder.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// A function of a count and a handle, whose result is an int32.
void define(const Scope& s, const std::string& name,
            const std::function<Outputs(const Scope&, const Outputs&)>& body) {
  define_function(s, {.name = name,
                      .args = {{"count", DataType::kInt32, {}},
                               {"table", DataType::kResource, {}}},
                      .results = {{DataType::kInt32, {}}},
                      .body = body});
}

Output read(const Scope& s, const Output& handle) {
  return s.op("ReadVariableOp", {handle}, {{"dtype", DataType::kInt32}})[0];
}

// The ops that a call of the function applies to its handle.
std::set<std::string> uses_of(const Graph& graph, const std::string& call) {
  HandleUses uses(graph.library());
  const Node* node = graph.find(call);
  REQUIRE(node != nullptr);
  REQUIRE(uses.is_call(*node));
  std::set<std::string> found;
  uses.visit(*node, node->num_inputs() - 1,
             [&](const std::string& op) { found.insert(op); });
  return found;
}

struct Library {
  Graph graph;
  Scope s{graph};
  Output handle =
      ops::variable(s.named("v"), DataType::kInt32, PartialShape()).handle;

  std::set<std::string> uses(const std::string& function) {
    call(s.named("call"), function, {1, handle});
    REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
    const std::string name = graph.find("call") != nullptr ? "call" : function;
    return uses_of(graph, name);
  }
};

}  // namespace

TEST_CASE("what a function does with its handle is found, and no more") {
  Library library;
  define(library.s, "f", [](const Scope& in, const Outputs& a) -> Outputs {
    const Output other = ops::variable(in, DataType::kInt32, {}).handle;
    ops::assign_add(in, {other, DataType::kInt32, {}}, a[0]);
    return {read(in, ops::identity(in, a[1]))};
  });
  CHECK(library.uses("f") ==
        std::set<std::string>{"Identity", "ReadVariableOp"});
}

TEST_CASE("calls in calls, and those that come back, are followed") {
  Library library;
  define_functions(library.s,
                   {{.name = "odd",
                     .args = {{"count", DataType::kInt32, {}},
                              {"table", DataType::kResource, {}}},
                     .results = {{DataType::kInt32, {}}},
                     .body = [](const Scope& in, const Outputs& a) -> Outputs {
                       return {call(in, "even", {a[0], a[1]})[0]};
                     }},
                    {.name = "even",
                     .args = {{"count", DataType::kInt32, {}},
                              {"table", DataType::kResource, {}}},
                     .results = {{DataType::kInt32, {}}},
                     .body = [](const Scope& in, const Outputs& a) -> Outputs {
                       return {ops::add(in, call(in, "odd", {a[0], a[1]})[0],
                                        read(in, a[1]))};
                     }}});
  CHECK(library.uses("odd") == std::set<std::string>{"ReadVariableOp"});
}

TEST_CASE("a predicate before the arguments is none of them") {
  Library library;
  define(library.s, "reads", [](const Scope& in, const Outputs& a) -> Outputs {
    return {read(in, a[1])};
  });
  define(library.s, "counts",
         [](const Scope&, const Outputs& a) -> Outputs { return {a[0]}; });
  library.s.named("if").op("If",
                           {ops::constant(library.s, true),
                            ops::constant(library.s, 1), library.handle},
                           {{"then_branch", FunctionRef{"reads", {}}},
                            {"else_branch", FunctionRef{"counts", {}}},
                            {"Tout", std::vector<DataType>{DataType::kInt32}}});
  REQUIRE_MESSAGE(library.s.status().ok(), library.s.status().to_string());
  CHECK(uses_of(library.graph, "if") ==
        std::set<std::string>{"ReadVariableOp"});
}
