// Variables by name: which are made, shared, or rejected.
#include "graph/builder/variable_scope.h"

#include <doctest/doctest.h>

#include "graph/analysis/validate.h"
#include "graph/builder/builder.h"
#include "tests/graph/builder/dump.h"
#include "tests/graph/hand_made.h"

namespace tagflow::graph {

using namespace ops;
using testing::contains;

namespace {

struct Fixture {
  Graph graph;
  Scope s{graph};
  VariableScope vars;

  std::string message() const { return std::string(s.status().message()); }
  Code code() const { return s.status().code(); }
};

std::vector<std::string> names(const std::vector<ScopedVariable>& variables) {
  std::vector<std::string> all;
  for (const ScopedVariable& variable : variables)
    all.push_back(variable.name());
  return all;
}

std::vector<std::string> slices(const ScopedVariable& variable) {
  std::vector<std::string> all;
  for (size_t i = 0; i < variable.parts().size(); ++i)
    all.push_back(variable.shape_and_slice(i));
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Fixture, "names of scopes nest, whatever the ops are named") {
  const Scope ops = s.sub_scope("other");
  const VariableScope inner = vars.sub_scope("a").sub_scope("b");
  CHECK(inner.name() == "a/b");
  const ScopedVariable v = inner.get(ops, "w", {2, 3});
  vars.get(ops, "c/w", {4}, {.dtype = DataType::kInt32, .trainable = false});
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(v.name() == "a/b/w");
  CHECK(v.shape() == Shape{2, 3});
  CHECK(names(vars.variables()) == Names{"a/b/w", "c/w"});
  CHECK(names(inner.trainable_variables()) == Names{"a/b/w"});
  CHECK(dump(graph, "a/b/w") == "a/b/w = VarHandleOp()");
  CHECK(graph.find("a/b/w/Initializer/RandomUniform") != nullptr);
  CHECK(dump(graph, "a/b/w/Assign") ==
        "a/b/w/Assign = AssignVariableOp(a/b/w, a/b/w/Initializer/AddV2)");
  CHECK(v.read(ops).shape() == PartialShape{2, 3});
  CHECK(validate(graph).ok());
}

TEST_CASE_FIXTURE(Fixture, "a variable is in the collections it asks for") {
  vars.get(s, "a", {1}, {.collections = {"losses", "losses"}});
  vars.get(s, "b", {1}, {.trainable = false, .collections = {"losses"}});
  CHECK(names(vars.collection("losses")) == Names{"a", "b"});
  CHECK(names(vars.collection("trainable_variables")) == Names{"a"});
  CHECK(vars.collection("others").empty());
}

TEST_CASE_FIXTURE(Fixture, "a scope that reuses gives what is there") {
  const ScopedVariable v = vars.sub_scope("a").get(s, "w", {2});
  const VariableScope again = vars.sub_scope("a").with_reuse(Reuse::kAlways);
  CHECK(again.get(s, "w", {2}).parts()[0].variable.handle ==
        v.parts()[0].variable.handle);
  CHECK(vars.variables().size() == 1);
  const VariableScope both = vars.with_reuse(Reuse::kAuto).sub_scope("a");
  CHECK(both.get(s, "w", {2}).name() == "a/w");
  CHECK(both.get(s, "x", {2}).name() == "a/x");
  CHECK(vars.variables().size() == 2);
  CHECK(s.ok());
}

TEST_CASE_FIXTURE(
    Fixture,
    "get() refuses a variable that exists, or that must and does not") {
  vars.sub_scope("a").get(s, "kernel", {2, 3});
  SUBCASE("a second one is not an accident") {
    vars.get(s, "a/kernel", {2, 3});
    CHECK(code() == Code::kAlreadyExists);
    CHECK(message() ==
          "[VariableScope::get] \"a/kernel\" exists already; a scope with "
          "Reuse::kAlways or kAuto would give it");
  }
  SUBCASE("one that is missing is told from one that is meant") {
    vars.with_reuse(Reuse::kAlways).sub_scope("a").get(s, "kernal", {2, 3});
    CHECK(code() == Code::kNotFound);
    CHECK(message() ==
          "[VariableScope::get] there is no variable \"a/kernal\" to be "
          "reused; did "
          "you mean \"a/kernel\"?");
  }
  SUBCASE("of another shape") {
    vars.with_reuse(Reuse::kAuto).get(s, "a/kernel", {3, 2});
    CHECK(message() ==
          "[VariableScope::get] \"a/kernel\" is float[2,3], and asked for as "
          "float[3,2]");
  }
  SUBCASE("of another type") {
    vars.with_reuse(Reuse::kAlways)
        .get(s, "a/kernel", {2, 3}, {.dtype = DataType::kDouble});
    CHECK(contains(message(), "and asked for as double[2,3]"));
  }
  SUBCASE("in other parts") {
    vars.with_reuse(Reuse::kAlways)
        .with_partitioner(partitioners::fixed_size(2))
        .get(s, "a/kernel", {2, 3});
    CHECK(message() ==
          "[VariableScope::get] \"a/kernel\" is in one piece, and asked for in "
          "[2,1] "
          "parts");
  }
}

TEST_CASE_FIXTURE(Fixture, "a scope that is to be unique gets a number") {
  CHECK(vars.unique_scope("cell").name() == "cell");
  CHECK(vars.unique_scope("cell").name() == "cell_1");
  CHECK(vars.sub_scope("a").unique_scope("cell").name() == "a/cell");
  CHECK(vars.sub_scope("cell").name() == "cell");
}

TEST_CASE_FIXTURE(Fixture, "a variable of a loop's body is outside of it") {
  const Outputs last = while_loop(
      s, [](const Scope& in, const Outputs& v) { return less(in, v[0], 1.0f); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const ScopedVariable w = vars.get(in, "w", {});
        return add(in, v[0], w.read(in));
      },
      {0.0f});
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(dump(graph, "w") == "w = VarHandleOp()");
  CHECK(dump(graph, "w/Assign")
            .starts_with("w/Assign = AssignVariableOp(w, w/"
                         "Initializer/"));
  vars.initialize(s.named("init"));
  CHECK(dump(graph, "init") == "init = NoOp(^w/Assign)");
  CHECK(validate(graph).ok());
}

TEST_CASE_FIXTURE(
    Fixture, "a partitioned variable's parts are slices along one dimension") {
  const VariableScope cut = vars.with_partitioner(partitioners::fixed_size(3));
  const ScopedVariable v = cut.get(s, "w", {10, 4});
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(v.is_partitioned());
  CHECK(slices(v) == Names{"10 4 0,4:0,4", "10 4 4,3:0,4", "10 4 7,3:0,4"});
  CHECK(v.parts()[1].name == "w/part_1");
  CHECK(v.parts()[1].shape == Shape{3, 4});
  CHECK(v.read(s).shape() == PartialShape{10, 4});
  // As many as there are rows, and none of a scalar.
  CHECK(slices(cut.get(s, "two", {2})) == Names{"2 0,1", "2 1,1"});
  CHECK(slices(cut.get(s, "none", {})) == Names{""});
  CHECK(cut.get(s, "none_of_0", {0, 2}).parts().size() == 1);
  const ScopedVariable across = vars.get(
      s, "across", {2, 5}, {.partitioner = partitioners::fixed_size(2, 1)});
  CHECK(slices(across) == Names{"2 5 0,2:0,3", "2 5 0,2:3,2"});
  CHECK(across.partition_axis() == 1);
  CHECK(across.assign(s, fill(s, {2, 5}, 1.0f)).is_operation());
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(validate(graph).ok());
}

TEST_CASE("partitioners count the bytes of an element") {
  using partitioners::max_bytes;
  using partitioners::max_parts;
  const auto parts = [](const Partitioner& p, const Shape& shape,
                        DataType dtype = DataType::kFloat) {
    return testing::must(p(shape, dtype));
  };
  using List = std::vector<int64_t>;
  // Rows of 16 bytes.
  CHECK(parts(max_bytes({.bytes = 160}), {100, 4}) == List{10, 1});
  CHECK(parts(max_bytes({.bytes = 159}), {100, 4}) == List{12, 1});
  CHECK(parts(max_bytes({.bytes = 1}), {100, 4}) == List{100, 1});
  CHECK(parts(max_bytes({.bytes = 1, .max_parts = 7}), {100, 4}) == List{7, 1});
  CHECK(parts(max_bytes({.bytes = 1 << 20}), {100, 4}) == List{1, 1});
  CHECK(parts(max_bytes({.bytes = 32, .axis = 1}), {2, 8}) == List{1, 2});
  CHECK(parts(max_bytes({.bytes = 32}), {6}, DataType::kString) == List{3});
  CHECK(parts(max_bytes({.bytes = 1}), {0, 4}) == List{1, 1});
  CHECK(parts(max_parts({.parts = 8}), {1024, 1024}) == List{8, 1});
  CHECK(parts(max_parts({.parts = 99}), {1024, 1024}) == List{16, 1});
  CHECK(parts(max_parts({.parts = 99}), {10, 10}) == List{1, 1});

  const auto error = [](const Partitioner& p) {
    return std::string(p({4, 4}, DataType::kFloat).status().message());
  };
  CHECK(error(partitioners::fixed_size(0)) ==
        "[partitioners] fixed_size: the number of parts must be positive, not "
        "0");
  CHECK(error(partitioners::fixed_size(2, 2)) ==
        "[partitioners] fixed_size: a variable of shape [4,4] has no dimension "
        "2");
  CHECK(error(max_bytes({})) ==
        "[partitioners] max_bytes: bytes must be positive, not 0");
}

TEST_CASE_FIXTURE(Fixture, "a variable that cannot be made is refused") {
  const auto parts = [](std::vector<int64_t> list) -> Partitioner {
    return [list](const Shape&, DataType) -> Result<std::vector<int64_t>> {
      return list;
    };
  };
  SUBCASE("of a shape that there is not") {
    vars.get(s, "w", {-1, 2});
    CHECK(contains(message(), "[VariableScope::get] \"w\": "));
  }
  SUBCASE("of resources") {
    vars.get(s, "w", {1}, {.dtype = DataType::kResource});
    CHECK(message() ==
          "[VariableScope::get] \"w\": there is no variable of resource");
  }
  SUBCASE("where the graph has that name") {
    no_op(s.named("w"));
    vars.get(s, "w", {1});
    CHECK(code() == Code::kAlreadyExists);
    CHECK(message() ==
          "[VariableScope::get] \"w\": the graph has another node or scope of "
          "that "
          "name");
  }
  SUBCASE("cut along two dimensions") {
    vars.get(s, "w", {4, 4}, {.partitioner = parts({2, 2})});
    CHECK(contains(message(), "of shape [4,4] cannot be cut into [2,2] parts"));
  }
  SUBCASE("cut into more parts than rows") {
    vars.get(s, "w", {4, 4}, {.partitioner = parts({5, 1})});
    CHECK(contains(message(), "cannot be cut into [5,1] parts"));
  }
  SUBCASE("cut into none") {
    vars.get(s, "w", {4, 4}, {.partitioner = parts({0, 1})});
    CHECK(contains(message(), "cannot be cut into [0,1] parts"));
  }
  SUBCASE("by an initializer of another type") {
    vars.get(s, "w", {2},
             {.initializer = [](const Scope& in, const InitialPart&) {
               return Output(constant(in, {1, 2}));
             }});
    CHECK(message() ==
          "[VariableScope::get] \"w\" is float[2], but its initializer makes "
          "int32[2]");
  }
  SUBCASE("by random integers") {
    vars.get(s, "w", {2},
             {.dtype = DataType::kInt32,
              .initializer = initializers::random_normal()});
    CHECK(message() ==
          "[initializers] \"w/Initializer\": random_normal is for "
          "floating-point types, not int32");
  }
  SUBCASE("by a value of another shape") {
    vars.get(s, "w", {2},
             {.initializer = initializers::constant({1.0, 2.0, 3.0})});
    CHECK(message() ==
          "[initializers] \"w/Initializer\": the value is of shape [3], the "
          "variable of [2]");
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "variable scopes can give values in place of variables") {
  int calls = 0;
  const VariableScope frozen = vars.sub_scope("a").with_values(
      [&](const Scope& in, const std::string& name, const Shape& shape,
          DataType) {
        ++calls;
        CHECK(name == "a/w");
        return Output(fill(in, Tensor::of<int64_t>({1}, shape.dims()), 2.0f));
      });
  const ScopedVariable v = frozen.get(s, "w", {3});
  CHECK(frozen.with_reuse(Reuse::kAuto).get(s, "w", {3}).read(s) == v.read(s));
  CHECK(calls == 1);
  CHECK(v.read(s).node()->name() == "a/w");
  CHECK(vars.variables().empty());
  CHECK(s.ok());
  v.assign(s, 1.0f);
  CHECK(message() ==
        "[VariableScope::get] \"a/w\" is a value, to which nothing can be "
        "assigned");
}

TEST_CASE_FIXTURE(Fixture,
                  "variable scopes refuse a value of another type or shape") {
  vars.with_values([](const Scope& in, const std::string&, const Shape&,
                      DataType) { return Output(constant(in, 1)); })
      .get(s, "w", {3});
  CHECK(message() ==
        "[VariableScope::get] \"w\": float[3] is wanted, the value is int32[]");
}

TEST_CASE_FIXTURE(Fixture, "variable scopes refuse to save without variables") {
  vars.save(s, "prefix");
  CHECK(message() == "[save] there are no variables");
}

}  // namespace tagflow::graph
