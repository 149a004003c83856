// Errors of cond() and while_loop().
#include <doctest/doctest.h>

#include "graph/builder/builder.h"

namespace tagflow::graph {

using namespace ops;

namespace {

// A graph with some inputs, and the message of its first error.
struct Fixture {
  Graph graph;
  Scope s{graph};
  Output x = placeholder(s.named("x"), DataType::kFloat, {});
  Output y = placeholder(s.named("y"), DataType::kFloat, {2});
  Output n =
      placeholder(s.named("n"), DataType::kInt32, PartialShape::scalar());
  Output p = placeholder(s.named("p"), DataType::kBool, PartialShape::scalar());

  std::string message() const { return std::string(s.status().message()); }
  Outputs loop(const Inputs& vars, const BodyFn& body,
               const WhileOptions& options = {}) {
    return while_loop(
        s, [this](const Scope&, const Outputs&) { return p; }, body, vars,
        options);
  }
};

Outputs same(const Scope&, const Outputs& vars) { return vars; }

}  // namespace

TEST_CASE_FIXTURE(Fixture, "the predicate of a conditional is a bool scalar") {
  const auto branch = [this](const Scope&) { return x; };
  SUBCASE("not a number") {
    cond(s, n, branch, branch);
    CHECK(message() ==
          "[cond] \"cond\": the predicate \"n:0\" is int32, not bool");
  }
  SUBCASE("not a vector") {
    cond(s.named("c"), {true, false}, branch, branch);
    CHECK(message() ==
          "[cond] \"c\": the predicate \"c/pred:0\" is of shape [2], not a "
          "scalar");
  }
  SUBCASE("not an operation") {
    cond(s, no_op(s), branch, branch);
    CHECK(message() == "[cond] \"cond\": the predicate is not a tensor");
  }
}

TEST_CASE_FIXTURE(Fixture, "branches agree on their outputs") {
  SUBCASE("in number") {
    cond(
        s, p,
        [this](const Scope&) -> Outputs {
          return {x, y};
        },
        [this](const Scope&) { return x; });
    CHECK(message() ==
          "[cond] \"cond\": 2 outputs if the predicate is true, 1 if it "
          "is false");
  }
  SUBCASE("in type") {
    cond(
        s, p, [this](const Scope&) { return x; },
        [](const Scope& f) { return constant(f.named("one"), 1); });
    CHECK(message() ==
          "[cond] \"cond\": output 0 is float (\"cond/Switch_1:1\") if the "
          "predicate is true, int32 (\"cond/one:0\") if it is false");
  }
  SUBCASE("of which there is one at least") {
    const auto nothing = [](const Scope&) { return Outputs(); };
    cond(s, p, nothing, nothing);
    CHECK(message() ==
          "[cond] \"cond\": the branches return nothing; return an operation "
          "to run one");
  }
  SUBCASE("which are valid") {
    const auto invalid = [](const Scope&) { return Output(); };
    cond(s, p, invalid, invalid);
    CHECK(message() ==
          "[cond] \"cond\": output 0 of a branch is an invalid Output");
  }
}

TEST_CASE_FIXTURE(Fixture, "switch_case wants branches and an integer") {
  SUBCASE("branches") {
    switch_case(s, n, {});
    CHECK(message() == "[switch_case] \"switch_case\": there are no branches");
  }
  SUBCASE("an integer") {
    switch_case(s, x, {[this](const Scope&) { return x; }});
    CHECK(message() ==
          "[switch_case] \"switch_case\": the index \"x:0\" is float<unknown>, "
          "not an int32 or int64 scalar");
  }
  SUBCASE("a scalar") {
    switch_case(s.named("pick"), {1, 2}, {[this](const Scope&) { return x; }});
    CHECK(message() ==
          "[switch_case] \"pick\": the index \"pick/index:0\" is int32[2], not "
          "an int32 or int64 scalar");
  }
}

TEST_CASE_FIXTURE(Fixture, "case_ wants a case or a default") {
  case_(s.named("pick"), {}, nullptr);
  CHECK(message() == "[case_] \"pick\": there are no cases and no default");
}

TEST_CASE_FIXTURE(Fixture, "the predicate of a loop is a bool scalar") {
  const auto run = [this](const PredicateFn& predicate) {
    while_loop(s, predicate, same, {x});
  };
  SUBCASE("not a number") {
    run([](const Scope&, const Outputs& v) { return v[0]; });
    CHECK(message() ==
          "[while_loop] \"while\": the predicate \"while/Merge:0\" is float, "
          "not bool");
  }
  SUBCASE("not a vector") {
    run([this](const Scope& in, const Outputs&) { return less(in, y, y); });
    CHECK(message() ==
          "[while_loop] \"while\": the predicate \"while/Less:0\" is of shape "
          "[2], not a scalar");
  }
  SUBCASE("not nothing") {
    run([](const Scope&, const Outputs&) { return Output(); });
    CHECK(message() ==
          "[while_loop] \"while\": the predicate returns no tensor");
  }
}

TEST_CASE_FIXTURE(Fixture, "a body returns a tensor for each variable") {
  SUBCASE("in number") {
    loop({x, n}, [](const Scope&, const Outputs& v) { return v[0]; });
    CHECK(message() ==
          "[while_loop] \"while\": the body returns 1 outputs for 2 variables");
  }
  SUBCASE("in type") {
    loop({x, n}, [](const Scope&, const Outputs& v) -> Outputs {
      return {v[0], v[0]};
    });
    CHECK(message() ==
          "[while_loop] \"while\": variable 1 (\"n:0\"): int32[] became "
          "float<unknown> (\"while/Identity:0\") in the body");
  }
  SUBCASE("not an operation") {
    loop({x}, [](const Scope& in, const Outputs&) { return no_op(in); });
    CHECK(message() ==
          "[while_loop] \"while\": the body returns no tensor for variable 0 "
          "(\"x:0\")");
  }
}

TEST_CASE_FIXTURE(Fixture, "shapes of variables are invariant") {
  const auto grow = [](const Scope& in, const Outputs& v) {
    return concat(in, {v[0], v[0]}, 0);
  };
  SUBCASE("or the loop says which changes") {
    loop({y}, grow);
    CHECK(message() ==
          "[while_loop] \"while\": variable 0 (\"y:0\"): float[2] became "
          "float[4] (\"while/ConcatV2:0\") in the body; give a wider shape "
          "invariant");
  }
  SUBCASE("a known shape does not become unknown") {
    loop({n, y}, [this](const Scope&, const Outputs& v) -> Outputs {
      return {v[0], x};
    });
    CHECK(message() ==
          "[while_loop] \"while\": variable 1 (\"y:0\"): float[2] became "
          "float<unknown> (\"x:0\") in the body; give a wider shape invariant");
  }
  SUBCASE("a wider invariant allows it") {
    const Outputs r = loop({y}, grow, {.shape_invariants = {{-1}}});
    CHECK(s.ok());
    CHECK(r[0].shape() == PartialShape{-1});
  }
  SUBCASE("the initial value satisfies it") {
    loop({y}, same, {.shape_invariants = {{3}}});
    CHECK(message() ==
          "[while_loop] \"while\": variable 0 (\"y:0\") enters with shape [2], "
          "which its invariant [3] does not allow");
  }
  SUBCASE("there is one for each variable") {
    loop({y}, same, {.shape_invariants = {{2}, {2}}});
    CHECK(message() ==
          "[while_loop] \"while\": 2 shape invariants for 1 variables");
  }
  SUBCASE("or one by its number") {
    const Outputs r = loop({x, y}, same, {.shapes = {{"[1]", {-1}}}});
    CHECK(s.ok());
    CHECK(r[1].shape() == PartialShape{-1});
  }
  SUBCASE("of a number that there is") {
    loop({x, y}, same, {.shapes = {{"[2]", {-1}}}});
    CHECK(
        message() ==
        "[while_loop] \"while\": a shape is given for \"[2]\", which is not a "
        "variable, did you mean \"[0]\"?");
  }
  SUBCASE("what enters with a known shape keeps it") {
    CHECK(loop({y}, same)[0].shape() == PartialShape{2});
  }
}

TEST_CASE_FIXTURE(Fixture, "options of a loop are checked") {
  SUBCASE("variables") {
    loop({}, same, {.name = "none"});
    CHECK(message() == "[while_loop] \"none\": there are no variables");
  }
  SUBCASE("parallel_iterations") {
    loop({x}, same, {.parallel_iterations = 0});
    CHECK(message() ==
          "[while_loop] \"while\": parallel_iterations is 0, not at least 1");
  }
  SUBCASE("maximum_iterations") {
    loop({x}, same, {.maximum_iterations = y});
    CHECK(message() ==
          "[while_loop] \"while\": maximum_iterations (\"y:0\") is float[2], "
          "not an int32 or int64 scalar");
  }
  SUBCASE("an operation is not a variable") {
    loop({no_op(s.named("op"))}, same);
    CHECK(message() ==
          "[while_loop] \"while\": variable 0 (\"op\") is not a tensor");
  }
}

TEST_CASE_FIXTURE(Fixture, "a loop's inner tensors cannot be used outside") {
  Output inside;
  loop({x}, [&](const Scope& in, const Outputs& v) {
    return inside = neg(in.named("in"), v[0]);
  });
  REQUIRE(s.ok());
  SUBCASE("as an input") {
    neg(s.named("out"), inside);
    CHECK(message() ==
          "\"out\" uses \"while/in\" from inside the loop \"while\": only the "
          "results of a loop can be used outside (and inside, only the Scope "
          "that its body is given)");
  }
  SUBCASE("as a control input") {
    no_op(s.named("out").with_control_dependencies(inside));
    CHECK(message().find("\"out\" uses \"while/in\" from inside") == 0);
  }
  SUBCASE("also for another loop") {
    loop({x}, [&](const Scope&, const Outputs&) { return inside; });
    CHECK(message().find("from inside the loop \"while\"") !=
          std::string::npos);
  }
  SUBCASE("but more can be added to it") {
    // Scopes of a body may outlive it.
    Graph later;
    Scope t(later);
    Scope kept = t;
    Output variable;
    while_loop(
        t, [](const Scope& in, const Outputs& v) { return less(in, v[0], 3); },
        [&](const Scope& in, const Outputs& v) {
          kept = in;
          variable = v[0];
          return add(in, v[0], 1);
        },
        {0});
    neg(kept, variable);
    CHECK(t.ok());
  }
}

TEST_CASE_FIXTURE(Fixture, "a body built with the scope outside is refused") {
  loop({x}, [&](const Scope&, const Outputs& v) { return neg(s, v[0]); });
  CHECK(message().find(
            "\"Neg\" uses \"while/Identity\" from inside the loop") == 0);
}

TEST_CASE_FIXTURE(Fixture, "an error in a body ends the loop's construction") {
  int bodies = 0;
  const Outputs r = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        add(in, v[0], n);  // float and int32
        return p;
      },
      [&](const Scope&, const Outputs& v) {
        ++bodies;
        return v;
      },
      {x});
  CHECK(bodies == 0);
  CHECK(r.empty());
  CHECK(message().find("while/AddV2") != std::string::npos);
}

}  // namespace tagflow::graph
