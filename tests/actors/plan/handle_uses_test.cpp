#include "actors/plan/handle_uses.h"

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
  REQUIRE_FALSE(uses.called(*node).empty());
  std::set<std::string> found;
  for (const auto& [summary, first] : uses.called(*node))
    found.merge(std::set(summary->ops[size_t(first + node->num_inputs() - 1)]));
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
    return uses_of(graph, "call");
  }
};

}  // namespace

TEST_CASE("handle uses: those of a function are found, and no others") {
  Library library;
  define(library.s, "f", [](const Scope& in, const Outputs& a) -> Outputs {
    const Output other = ops::variable(in, DataType::kInt32, {}).handle;
    ops::assign_add(in, {other, DataType::kInt32, {}}, a[0]);
    return {read(in, ops::identity(in, a[1]))};
  });
  CHECK(library.uses("f") ==
        std::set<std::string>{"Identity", "ReadVariableOp"});
}

TEST_CASE("handle uses: calls in calls and recursions are followed") {
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

TEST_CASE("handle uses: a predicate does not count as an argument") {
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

TEST_CASE("handle uses: handles of one op are tied, in calls and recursion") {
  Graph graph;
  const Scope s(graph);
  const auto function = [&](const std::string& name, const auto& body) {
    return FunctionSpec{.name = name,
                        .args = {{"a", DataType::kResource, {}},
                                 {"b", DataType::kResource, {}},
                                 {"c", DataType::kResource, {}},
                                 {"x", DataType::kFloat, {}}},
                        .results = {{DataType::kFloat, {}}},
                        .body = body};
  };
  define_functions(
      s, {function("step",
                   [](const Scope& in, const Outputs& a) -> Outputs {
                     const Output step = in.op(
                         "ResourceApplyMomentum",
                         {a[0], ops::identity(in, a[1]), a[3], a[3], a[3]});
                     return {ops::identity(in.with_control_dependencies({step}),
                                           a[3])};
                   }),
          // Each time the handles change their places.
          function("turn", [](const Scope& in, const Outputs& a) -> Outputs {
            const Output other = call(in, "turn", {a[1], a[2], a[0], a[3]})[0];
            return {ops::add(in, other,
                             call(in, "step", {a[0], a[1], a[2], a[3]})[0])};
          })});
  const auto handle = [&](const char* name) {
    return ops::variable(s.named(name), DataType::kFloat, PartialShape())
        .handle;
  };
  const Output a = handle("a"), b = handle("b"), c = handle("c");
  call(s.named("one"), "step", {a, b, c, 1.0F});
  call(s.named("all"), "turn", {a, b, c, 1.0F});
  REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
  HandleUses uses(graph.library());
  const auto tied = [&](const char* node, uint32_t i, uint32_t k) {
    const auto callees = uses.called(*graph.find(node));
    REQUIRE(callees.size() == 1);
    graph::UnionFind& ties = callees[0].summary->ties;
    return ties.find(i) == ties.find(k);
  };
  CHECK(tied("one", 0, 1));
  CHECK_FALSE(tied("one", 1, 2));
  CHECK(tied("all", 0, 1));
  CHECK(tied("all", 1, 2));
}
