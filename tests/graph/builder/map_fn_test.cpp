// The nodes, shapes and errors of map_fn, scan, foldl and foldr.
#include "graph/builder/map_fn.h"

#include <doctest/doctest.h>

#include "graph/analysis/validate.h"
#include "graph/builder/builder.h"

namespace tagflow::graph {

using namespace ops;

namespace {

struct Fixture {
  Graph graph;
  Scope s{graph};
  Output x = placeholder(s.named("x"), DataType::kFloat, {3, 2});
  Output y = placeholder(s.named("y"), DataType::kFloat, {4});
  Output z = placeholder(s.named("z"), DataType::kInt32, {-1});
  Output scalar =
      placeholder(s.named("scalar"), DataType::kFloat, PartialShape::scalar());

  std::string message() const { return std::string(s.status().message()); }
};

struct Pair {
  Output a, b;
  TAGFLOW_FIELDS(a, b)
};

Output same(const Scope&, const Output& v) { return v; }
Output sum_of(const Scope& in, const Output& a, const Output& v) {
  return add(in, a, v);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture,
                  "map_fn, scan and foldl infer types and shapes of results") {
  const Pair mapped = map_fn(
      s,
      [](const Scope& in, const Output& v) {
        return Pair{reduce_sum(in, v), greater(in, v, 0)};
      },
      x);
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(mapped.a.shape() == PartialShape{3});
  CHECK(mapped.b.dtype() == DataType::kBool);
  CHECK(mapped.b.shape() == PartialShape{3, 2});
  CHECK(map_fn(s, same, z).shape() == PartialShape{-1});
  CHECK(scan(s, sum_of, x).shape() == PartialShape{3, 2});
  CHECK(foldl(s, sum_of, x).shape() == PartialShape{2});
  CHECK(foldr(s, sum_of, y, scalar).shape() == PartialShape::scalar());
  CHECK(validate(graph).ok());
}

TEST_CASE_FIXTURE(Fixture,
                  "map_fn, scan and foldl name their ops after themselves") {
  map_fn(s, same, x);
  scan(s.named("sums"), sum_of, x);
  foldl(s, sum_of, x);
  REQUIRE_MESSAGE(s.ok(), message());
  for (const char* name :
       {"map/elems", "map/results", "map/while/Enter", "sums/while/LoopCond",
        "foldl/while/TensorArrayReadV3"})
    CHECK_MESSAGE(graph.find(name) != nullptr, name);
}

TEST_CASE_FIXTURE(Fixture, "map_fn refuses inputs of different known lengths") {
  map_fn(
      s, [](const Scope&, const Pair& v) { return v.a; }, Pair{x, y});
  CHECK(message() == "[map_fn] \"map\": a has 3 elements, but b has 4");
}

TEST_CASE_FIXTURE(Fixture,
                  "map_fn and scan need inputs with a first dimension") {
  SUBCASE("not of a scalar") {
    map_fn(s, same, scalar);
    CHECK(message() ==
          "[map_fn] \"map\": \"scalar:0\" is a scalar, which has no elements");
  }
  SUBCASE("not of an operation") {
    scan(s, sum_of, no_op(s.named("op")));
    CHECK(message() == "[scan] \"scan\": \"op\" is not a tensor");
  }
  SUBCASE("not of nothing") {
    foldr(
        s,
        [](const Scope&, const std::vector<Output>& a,
           const std::vector<Output>&) { return a; },
        std::vector<Output>());
    CHECK(message() == "[foldr] \"foldr\": there are no elements");
  }
  SUBCASE("not of a TensorArray") {
    map_fn(
        s, [](const Scope&, const TensorArray& a) { return a; },
        TensorArray(s, 3, DataType::kFloat));
    CHECK(message().find("is a TensorArray; pass its stack() instead") !=
          std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "map_fn and scan refuse results that cannot be stacked") {
  const TensorArray array(s, 3, DataType::kFloat);
  SUBCASE("as no TensorArray can") {
    map_fn(
        s, [&](const Scope&, const Output&) { return array; }, x);
    CHECK(message() ==
          "[map_fn] \"map\": the result is a TensorArray, which cannot be "
          "stacked");
  }
  SUBCASE("as no operation can") {
    map_fn(
        s,
        [](const Scope& in, const Output& v) {
          return Pair{v, no_op(in)};
        },
        x);
    CHECK(message() == "[map_fn] \"map\": b is not a tensor");
  }
  SUBCASE("nor collected by a scan") {
    scan(
        s, [](const Scope&, const TensorArray& a, const Output&) { return a; },
        x, array);
    CHECK(message() ==
          "[scan] \"scan\": the result is a TensorArray, which cannot be "
          "stacked");
  }
}

TEST_CASE_FIXTURE(Fixture, "an accumulator keeps its type and shape") {
  SUBCASE("of a fold") {
    foldl(
        s,
        [](const Scope& in, const Output& a, const Output& v) {
          return concat(in, {a, v}, 0);
        },
        x);
    CHECK(message() ==
          "[while_loop] \"foldl/while\": the accumulator: float[2] became "
          "float[4] (\"foldl/while/ConcatV2:0\") in the body; give a wider "
          "shape invariant");
  }
  SUBCASE("of a scan, named") {
    scan(
        s,
        [this](const Scope&, const Pair& a, const Output&) {
          return Pair{a.a, scalar};
        },
        z, Pair{scalar, z});
    CHECK(message() ==
          "[while_loop] \"scan/while\": b: int32[?] became float[] "
          "(\"scalar:0\") in the body");
  }
}

TEST_CASE_FIXTURE(Fixture, "an error in the function is kept") {
  map_fn(
      s, [this](const Scope& in, const Output& v) { return add(in, v, z); }, x);
  CHECK(message().find("[AddV2] node \"map/while/AddV2\"") == 0);
}

}  // namespace tagflow::graph
