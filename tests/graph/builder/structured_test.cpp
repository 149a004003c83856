// Structures as variables of loops and results of branches: their nodes, and
// errors with the path of the leaf.
#include <doctest/doctest.h>

#include "graph/analysis/validate.h"
#include "graph/builder/builder.h"
#include "tests/graph/builder/dump.h"

namespace tagflow::graph {

using namespace ops;

namespace {

struct Cell {
  Output c, h;
  TAGFLOW_FIELDS(c, h)
};

struct State {
  Output i;
  std::vector<Cell> cells;
  TAGFLOW_FIELDS(i, cells)
};

struct Outer {
  State state;
  std::map<std::string, Output> named;
  std::pair<Output, std::array<Output, 2>> rest;
  TAGFLOW_FIELDS(state, named, rest)
};

struct Fixture {
  Graph graph;
  Scope s{graph};
  Output x = placeholder(s.named("x"), DataType::kFloat, {3});
  Output n =
      placeholder(s.named("n"), DataType::kInt32, PartialShape::scalar());
  Output p = placeholder(s.named("p"), DataType::kBool, PartialShape::scalar());

  std::string message() const { return std::string(s.status().message()); }
  State state() const { return {n, {{x, x}, {x, x}}}; }
  State loop(const std::function<State(const Scope&, State)>& body,
             const WhileOptions& options = {}) {
    return while_loop(
        s, [this](const Scope&, const State&) { return p; }, body, state(),
        options);
  }
};

std::vector<std::string> paths(const std::vector<Leaf>& leaves) {
  std::vector<std::string> result;
  for (const Leaf& leaf : leaves) result.push_back(leaf.path);
  return result;
}

}  // namespace

TEST_CASE_FIXTURE(
    Fixture, "a structure's leaves have paths, in the order of the fields") {
  const Outer outer{state(), {{"b", x}, {"a", n}}, {n, {x, p}}};
  const std::vector<Leaf> leaves = leaves_of(outer);
  CHECK(paths(leaves) == std::vector<std::string>{
                             "state.i", "state.cells[0].c", "state.cells[0].h",
                             "state.cells[1].c", "state.cells[1].h", "named.a",
                             "named.b", "rest[0]", "rest[1][0]", "rest[1][1]"});
  CHECK(leaves[5].output == n);
  CHECK(leaves[9].output == p);
  CHECK(paths(leaves_of(std::tuple(x, Outputs{x, n}))) ==
        std::vector<std::string>{"[0]", "[1][0]", "[1][1]"});
  CHECK(paths(leaves_of(x)) == std::vector<std::string>{""});
}

TEST_CASE_FIXTURE(Fixture,
                  "a structure's leaves can be replaced, and nothing else is") {
  const State other =
      with_leaves(state(), {p, Output(x.node(), 1), x, n, Output()});
  CHECK(other.i == p);
  CHECK(other.cells[0].c == Output(x.node(), 1));
  CHECK(other.cells[1].c == n);
  CHECK_FALSE(other.cells[1].h.valid());
  const auto short_of = with_leaves(std::tuple(x, Outputs{x, n}), {p, n});
  CHECK(std::get<1>(short_of)[0] == n);
  CHECK(std::get<1>(short_of).size() == 2);
  CHECK_FALSE(std::get<1>(short_of)[1].valid());
}

TEST_CASE_FIXTURE(Fixture, "a loop of a structure is a loop of its leaves") {
  struct Sum {
    Output i, sum;
    TAGFLOW_FIELDS(i, sum)
  };
  const Sum last = while_loop(
      s, [this](const Scope& in, const Sum& v) { return less(in, v.i, n); },
      [](const Scope& in, Sum v) {
        v.sum = add(in, v.sum, v.i);
        v.i = add(in, v.i, 1);
        return v;
      },
      Sum{constant(s, 0), constant(s, 10)});
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(validate(graph).ok());
  CHECK(last.i.name() == "while/Exit:0");
  CHECK(last.sum.name() == "while/Exit_1:0");
  CHECK(dump(graph, "while/AddV2") ==
        "while/AddV2 = AddV2(while/Identity_1, while/Identity)");
  CHECK(dump(graph, "while/NextIteration_1") ==
        "while/NextIteration_1 = NextIteration(while/AddV2)");
}

TEST_CASE_FIXTURE(Fixture, "a single Output is a structure, too") {
  const Output last = while_loop(
      s, [this](const Scope& in, Output v) { return less(in, v, n); },
      [](const Scope& in, Output v) { return add(in, v, 1); }, n,
      {.maximum_iterations = 5});
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(last.name() == "while/Exit_1:0");
}

TEST_CASE_FIXTURE(Fixture, "a leaf keeps its type and shape, or is named") {
  SUBCASE("in shape") {
    loop([](const Scope& in, State v) {
      v.cells[1].h = concat(in, {v.cells[1].h, {0}}, 0);
      return v;
    });
    CHECK(message() ==
          "[while_loop] \"while\": cells[1].h: float[3] became float[4] "
          "(\"while/ConcatV2:0\") in the body; give a wider shape invariant");
  }
  SUBCASE("in type") {
    loop([](const Scope&, State v) {
      v.cells[0].c = v.i;
      return v;
    });
    CHECK(message() ==
          "[while_loop] \"while\": cells[0].c: float[3] became int32[] "
          "(\"while/Identity:0\") in the body");
  }
  SUBCASE("unless its shape is said to change") {
    const State last = loop(
        [](const Scope& in, State v) {
          v.cells[1].h = concat(in, {v.cells[1].h, {0}}, 0);
          return v;
        },
        {.shapes = {{"cells[1].h", {-1}}}});
    REQUIRE_MESSAGE(s.ok(), message());
    CHECK(last.cells[1].h.shape() == PartialShape{-1});
    CHECK(last.cells[1].c.shape() == PartialShape{3});
  }
  SUBCASE("to one with which it may enter") {
    loop([](const Scope&, State v) { return v; },
         {.shapes = {{"cells[1].h", {4}}}});
    CHECK(message() ==
          "[while_loop] \"while\": cells[1].h enters with shape [3], which its "
          "invariant [4] does not allow");
  }
  SUBCASE("by its path") {
    loop([](const Scope&, State v) { return v; },
         {.maximum_iterations = 3, .shapes = {{"cells[1].g", {-1}}}});
    CHECK(message() ==
          "[while_loop] \"while\": a shape is given for \"cells[1].g\", which "
          "is not a variable, did you mean \"cells[1].c\"?");
  }
}

TEST_CASE_FIXTURE(Fixture, "a body returns the leaves that entered") {
  SUBCASE("all") {
    loop([](const Scope&, State v) {
      v.cells.pop_back();
      return v;
    });
    CHECK(message() ==
          "[while_loop] \"while\": the body returns no cells[1].c");
  }
  SUBCASE("and no others") {
    loop([](const Scope&, State v) {
      v.cells.push_back(v.cells[0]);
      return v;
    });
    CHECK(message() ==
          "[while_loop] \"while\": the body returns cells[2].c, which is not a "
          "variable");
  }
  SUBCASE("each a tensor") {
    loop([](const Scope&, State v) {
      v.cells[0].h = Output();
      return v;
    });
    CHECK(message() ==
          "[while_loop] \"while\": the body returns no tensor for cells[0].h");
  }
  SUBCASE("at least one") {
    while_loop(
        s, [this](const Scope&, const std::vector<Cell>&) { return p; },
        [](const Scope&, const std::vector<Cell>& v) { return v; },
        std::vector<Cell>());
    CHECK(message() == "[while_loop] \"while\": there are no variables");
  }
  SUBCASE("each a tensor when it enters") {
    while_loop(
        s, [this](const Scope&, const Cell&) { return p; },
        [](const Scope&, const Cell& v) { return v; }, Cell{x, no_op(s)});
    CHECK(message() == "[while_loop] \"while\": h is not a tensor");
  }
}

TEST_CASE_FIXTURE(Fixture, "branches return structures of the same leaves") {
  SUBCASE("which are merged leaf by leaf") {
    const Cell cell = cond(
        s, p,
        [this](const Scope&) {
          return Cell{x, n};
        },
        [this](const Scope& in) {
          return Cell{neg(in, x), n};
        });
    REQUIRE_MESSAGE(s.ok(), message());
    CHECK(cell.c.name() == "cond/Merge:0");
    CHECK(cell.h.dtype() == DataType::kInt32);
  }
  SUBCASE("of the same types") {
    cond(
        s, p,
        [this](const Scope&) {
          return Cell{x, n};
        },
        [this](const Scope&) {
          return Cell{x, x};
        });
    CHECK(message() ==
          "[cond] \"cond\": output h is int32 (\"cond/Switch_2:1\") if the "
          "predicate is true, float (\"cond/Switch_3:0\") if it is false");
  }
  SUBCASE("all of them") {
    cond(
        s, p, [this](const Scope&) { return state(); },
        [this](const Scope&) {
          return State{n, {Cell{x, x}}};
        });
    CHECK(message() ==
          "[cond] \"cond\": cells[1].c is returned if the predicate is "
          "true, but not if it is false");
  }
  SUBCASE("and no others") {
    using Named = std::map<std::string, Output>;
    cond(
        s, p,
        [this](const Scope&) {
          return Named{{"a", n}};
        },
        [this](const Scope&) {
          return Named{{"a", n}, {"b", x}};
        });
    CHECK(message() ==
          "[cond] \"cond\": b is returned if the predicate is false, but "
          "not if it is true");
  }
  SUBCASE("which are valid") {
    cond(
        s, p, [](const Scope&) { return Cell(); },
        [](const Scope&) { return Cell(); });
    CHECK(message() ==
          "[cond] \"cond\": output c of a branch is an invalid Output");
  }
}

TEST_CASE_FIXTURE(Fixture, "case_ and switch_case choose structures") {
  const auto cell = [this](float value) {
    return [this, value](const Scope& in) {
      return Cell{constant(in, value), x};
    };
  };
  const Cell a = case_<Cell>(s, {{p, cell(1)}, {p, cell(2)}}, cell(3));
  const Cell b = switch_case<Cell>(s, n, {cell(1), cell(2)}, cell(3));
  const Cell c = switch_case<Cell>(s, n, {cell(1), cell(2), cell(3)});
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(validate(graph).ok());
  CHECK(a.c.name() == "case/cond/Merge:0");
  CHECK(b.h.name() == "switch_case/cond/Merge_1:0");
  CHECK(c.h.name() == "switch_case_1/cond/Merge_1:0");
}

TEST_CASE_FIXTURE(Fixture, "a structure has invalid leaves after an error") {
  s.fail(invalid_argument("first"));
  CHECK_FALSE(loop([](const Scope&, State v) { return v; }).i.valid());
  const Cell cell = cond(
      s, p,
      [this](const Scope&) {
        return Cell{x, n};
      },
      [this](const Scope&) {
        return Cell{x, n};
      });
  CHECK_FALSE(cell.c.valid());
  CHECK(message() == "first");
}

}  // namespace tagflow::graph
