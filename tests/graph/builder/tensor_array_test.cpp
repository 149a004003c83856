// The nodes, shapes and errors of TensorArray.
#include "graph/builder/tensor_array.h"

#include <doctest/doctest.h>

#include "graph/analysis/validate.h"
#include "graph/builder/builder.h"
#include "tests/graph/builder/dump.h"

namespace tagflow::graph {

using namespace ops;

namespace {

struct Fixture {
  Graph graph;
  Scope s{graph};
  Output n =
      placeholder(s.named("n"), DataType::kInt32, PartialShape::scalar());
  Output x = placeholder(s.named("x"), DataType::kFloat, {3});
  Output rows = placeholder(s.named("rows"), DataType::kFloat, {-1, 3});
  Output p = placeholder(s.named("p"), DataType::kBool, PartialShape::scalar());
  TensorArray array{s.named("a"), n, DataType::kFloat};

  std::string message() const { return std::string(s.status().message()); }
};

}  // namespace

TEST_CASE_FIXTURE(
    Fixture, "TensorArray: each method makes its op, in order of the flow") {
  const TensorArray written = array.write(s, 0, x);
  CHECK(dump(graph, "TensorArrayWriteV3") ==
        "TensorArrayWriteV3 = TensorArrayWriteV3(a, TensorArrayWriteV3/index, "
        "x, a:1)");
  CHECK(written.handle() == array.handle());
  CHECK(written.read(s, 0).node()->inputs()[2] == written.flow().endpoint());
  CHECK(array.read(s, 0).node()->inputs()[2] == array.flow().endpoint());
  CHECK(written.gather(s, {0, 1}).node()->op() == "TensorArrayGatherV3");
  CHECK(written.stack(s).node()->name() == "stack/TensorArrayGatherV3");
  CHECK(written.concat(s).node()->op() == "TensorArrayConcatV3");
  CHECK(written.size(s).dtype() == DataType::kInt32);
  CHECK(dump(graph, written.close(s).node()->name()) ==
        "TensorArrayCloseV3 = TensorArrayCloseV3(a, ^TensorArrayWriteV3)");
  CHECK(array.scatter(s, {1, 0}, rows).flow().node()->op() ==
        "TensorArrayScatterV3");
  CHECK(array.unstack(s, rows).flow().node()->name() ==
        "unstack/TensorArrayScatterV3");
  const TensorArray pieces(s.named("pieces"), 2, DataType::kFloat);
  CHECK(pieces.split(s, rows, {1, 2}).flow().node()->op() ==
        "TensorArraySplitV3");
  const Output lengths = placeholder(s, DataType::kInt32, {-1});
  CHECK(pieces.split(s, rows, lengths).flow().valid());
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(validate(graph).ok());
}

TEST_CASE_FIXTURE(Fixture,
                  "TensorArray: options become the node's attributes") {
  const TensorArray a(s.named("b"), 5, DataType::kInt64,
                      {.element_shape = {-1, 2},
                       .infer_shape = false,
                       .dynamic_size = true,
                       .clear_after_read = false,
                       .name = "mine"});
  const Node& node = *a.handle().node();
  CHECK(*node.attr<DataType>("dtype") == DataType::kInt64);
  CHECK(*node.attr<PartialShape>("element_shape") == PartialShape{-1, 2});
  CHECK(*node.attr<bool>("dynamic_size"));
  CHECK_FALSE(*node.attr<bool>("clear_after_read"));
  CHECK_FALSE(*node.attr<bool>("identical_element_shapes"));
  CHECK(*node.attr<std::string>("tensor_array_name") == "mine");
  CHECK(a.dtype() == DataType::kInt64);
}

TEST_CASE_FIXTURE(Fixture,
                  "TensorArray: a written value tells the elements' shape") {
  CHECK(array.element_shape() == PartialShape());
  SUBCASE("a value") {
    array.write(s, 0, x);
    CHECK(array.element_shape() == PartialShape{3});
    CHECK(array.read(s, 1).shape() == PartialShape{3});
    CHECK(array.stack(s).shape() == PartialShape{-1, 3});
    CHECK(array.gather(s, {0, 1}).shape() == PartialShape{2, 3});
  }
  SUBCASE("rows") {
    array.unstack(s, rows);
    CHECK(array.element_shape() == PartialShape{3});
  }
  SUBCASE("pieces") {
    array.split(s, rows, {1, 1});
    CHECK(array.element_shape() == PartialShape{-1, 3});
    CHECK(array.concat(s).shape() == PartialShape{-1, 3});
  }
  SUBCASE("a literal takes the type") {
    array.write(s, 0, 7);
    CHECK(array.element_shape() == PartialShape::scalar());
  }
  CHECK_MESSAGE(s.ok(), message());
}

TEST_CASE_FIXTURE(Fixture,
                  "TensorArray: shapes are not inferred if they may differ") {
  const TensorArray any(s, n, DataType::kFloat, {.infer_shape = false});
  any.write(s, 0, x).write(s, 1, placeholder(s, DataType::kFloat, {4}));
  CHECK(s.ok());
  CHECK(any.element_shape() == PartialShape());
}

TEST_CASE_FIXTURE(
    Fixture, "TensorArray: an array refuses what is not an element of it") {
  SUBCASE("by type") {
    array.write(s, 0, n);
    CHECK(message() ==
          "[TensorArray] write: \"a:0\" is an array of float, but \"n:0\" is "
          "int32");
  }
  SUBCASE("by shape") {
    array.write(s, 0, x).write(s, 1, 2.f);
    CHECK(message() ==
          "[TensorArray] write: \"a:0\" has elements of shape [3], not []");
  }
  SUBCASE("by shape of its rows") {
    array.write(s, 0, 2.f).unstack(s, rows);
    CHECK(message() ==
          "[TensorArray] unstack: \"a:0\" has elements of shape [], not [3]");
  }
  SUBCASE("a scalar has no rows") {
    array.scatter(s, {0}, 1.f);
    CHECK(message() ==
          "[TensorArray] scatter: \"value:0\" is a scalar, which has no first "
          "dimension");
  }
  SUBCASE("a scalar has no pieces") {
    array.split(s, 1.f, {1});
    CHECK(message() ==
          "[TensorArray] split: \"value:0\" is a scalar, which has no first "
          "dimension");
  }
  SUBCASE("an operation") {
    array.write(s, 0, no_op(s));
    CHECK(message() == "[TensorArray] write: the value is not a tensor");
  }
}

TEST_CASE_FIXTURE(Fixture, "TensorArray: an invalid array is refused once") {
  const TensorArray none;
  CHECK(none.dtype() == DataType::kInvalid);
  CHECK(none.element_shape() == PartialShape());
  CHECK_FALSE(none.handle().valid());
  CHECK_FALSE(none.write(s, 0, x).flow().valid());
  CHECK(message() == "[TensorArray] write: the array is invalid");
  CHECK_FALSE(array.stack(s).valid());
  CHECK_FALSE(array.unstack(s, rows).flow().valid());
  CHECK_FALSE(TensorArray(s, 3, DataType::kFloat).valid());
  CHECK(message() == "[TensorArray] write: the array is invalid");
}

TEST_CASE_FIXTURE(Fixture, "a loop's or conditional's array stays the same") {
  const TensorArray other(s.named("b"), n, DataType::kFloat);
  const auto forever = [this](const Scope&, const TensorArray&) { return p; };
  SUBCASE("as a variable") {
    const TensorArray last = while_loop(
        s, forever,
        [this](const Scope& in, const TensorArray& a) {
          return a.write(in, 0, x);
        },
        array);
    REQUIRE_MESSAGE(s.ok(), message());
    CHECK(last.handle() == array.handle());
    CHECK(last.flow().name() == "while/Exit:0");
    CHECK(last.element_shape() == PartialShape{3});
  }
  SUBCASE("or the body is refused") {
    while_loop(
        s, forever, [&](const Scope&, const TensorArray&) { return other; },
        array);
    CHECK(message() ==
          "[while_loop] \"while\": variable 0 (\"a:1\"): the body returns the "
          "TensorArray \"b:0\" for \"a:0\"; a variable stays the same array");
  }
  SUBCASE("or the branches are") {
    struct Named {
      TensorArray outs;
      TAGFLOW_FIELDS(outs)
    };
    cond(
        s, p, [&](const Scope&) { return Named{other}; },
        [&](const Scope&) { return Named{array}; });
    CHECK(message() ==
          "[cond] \"cond\": output outs is the TensorArray \"b:0\" if the "
          "predicate is true, \"a:0\" if it is false");
  }
}

}  // namespace tagflow::graph
