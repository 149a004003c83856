// Shape inference of element-wise ops, and its errors.
#include <doctest/doctest.h>

#include "graph/graph.h"

namespace tagflow::graph {

namespace {

constexpr int64_t kAny = PartialShape::kUnknown;

// A graph with one node over placeholders.
class OneNode {
 public:
  explicit OneNode(std::string op, AttrMap attrs = {})
      : op_(std::move(op)), attrs_(std::move(attrs)) {}

  OneNode& input(PartialShape shape, DataType dtype = DataType::kFloat) {
    const auto node =
        graph_.add(graph_.unique_name("x"), "Placeholder", {},
                   {{"dtype", dtype}, {"shape", std::move(shape)}});
    REQUIRE(node.ok());
    inputs_.push_back({*node, 0});
    return *this;
  }
  OneNode& constant(Tensor value) {
    const auto node = graph_.add(graph_.unique_name("c"), "Const", {},
                                 {{"dtype", value.dtype()}, {"value", value}});
    REQUIRE(node.ok());
    inputs_.push_back({*node, 0});
    return *this;
  }
  // The shapes of the outputs as text, or the error.
  std::string infer() {
    const auto node = graph_.add("op", op_, inputs_, attrs_);
    if (!node.ok()) return node.status().to_string();
    std::string text;
    for (int i = 0; i < (*node)->num_outputs(); ++i)
      text += (*node)->output_shape(i).to_string();
    return text;
  }

 private:
  Graph graph_;
  std::string op_;
  AttrMap attrs_;
  std::vector<Endpoint> inputs_;
};

bool contains(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a unary op's output looks like its input") {
  CHECK(OneNode("Exp").input({2, kAny}).infer() == "[2,?]");
  CHECK(OneNode("Exp").input(PartialShape::scalar()).infer() == "[]");
  CHECK(OneNode("IsNan").input(PartialShape()).infer() == "<unknown>");
}

TEST_CASE("a binary op's inputs are broadcast") {
  CHECK(OneNode("AddV2").input({2, 1}).input({3}).infer() == "[2,3]");
  CHECK(OneNode("Less").input({kAny, 1}).input({3}).infer() == "[?,3]");
  CHECK(contains(OneNode("AddV2").input({2}).input({3}).infer(),
                 "InvalidArgument"));
}

TEST_CASE("operands of different types are refused") {
  CHECK(contains(OneNode("AddV2")
                     .input({}, DataType::kFloat)
                     .input({}, DataType::kInt32)
                     .infer(),
                 "InvalidArgument"));
}

TEST_CASE("types that an op is not defined for are refused") {
  CHECK(contains(OneNode("Exp").input({}, DataType::kInt32).infer(),
                 "InvalidArgument"));
  CHECK(contains(OneNode("AddV2")
                     .input({}, DataType::kString)
                     .input({}, DataType::kString)
                     .infer(),
                 "InvalidArgument"));
}

TEST_CASE("shapes of Equal that do not fit give a scalar if allowed") {
  const AttrMap lenient{{"incompatible_shape_error", false}};
  CHECK(OneNode("Equal", lenient).input({2}).input({3}).infer() == "[]");
  CHECK(OneNode("Equal", lenient).input({2}).input({2}).infer() == "[2]");
  CHECK(OneNode("Equal", lenient).input({2}).input({kAny}).infer() ==
        "<unknown>");
  CHECK(contains(OneNode("Equal").input({2}).input({3}).infer(),
                 "InvalidArgument"));
}

TEST_CASE("sums take inputs of one shape") {
  CHECK(OneNode("AddN").input({kAny}).input({4}).infer() == "[4]");
  CHECK(contains(OneNode("AddN").input({2}).input({1}).infer(),
                 "inputs 0 and 1 have different shapes: [2], [1]"));
}

TEST_CASE("Select aligns its condition with rows or elements") {
  const auto select = [](PartialShape condition, PartialShape value) {
    return OneNode("Select")
        .input(std::move(condition), DataType::kBool)
        .input(value)
        .input(value)
        .infer();
  };
  CHECK(select({}, {2, 3}) == "[2,3]");
  CHECK(select({2}, {2, 3}) == "[2,3]");
  CHECK(select({2, 3}, {kAny, 3}) == "[2,3]");
  CHECK(contains(select({3}, {2, 3}), "a condition of shape [3]"));
  CHECK(contains(select({2, 2}, {2, 3}), "a condition of shape [2,2]"));
}

TEST_CASE("SelectV2 broadcasts three inputs") {
  CHECK(OneNode("SelectV2")
            .input({2, 1}, DataType::kBool)
            .input({3})
            .input(PartialShape::scalar())
            .infer() == "[2,3]");
}

TEST_CASE("limits of ClipByValue are scalars or like the value") {
  CHECK(OneNode("ClipByValue")
            .input({2})
            .input(PartialShape::scalar())
            .input({2})
            .infer() == "[2]");
  CHECK(
      contains(OneNode("ClipByValue")
                   .input({2})
                   .input({3})
                   .input(PartialShape::scalar())
                   .infer(),
               "limits must be scalars or of the value's shape [2], not [3]"));
}

TEST_CASE("Bitcast adds or takes the last dimension") {
  CHECK(OneNode("Bitcast", {{"type", DataType::kUInt8}}).input({2}).infer() ==
        "[2,4]");
  CHECK(
      OneNode("Bitcast", {{"type", DataType::kDouble}}).input({5, 2}).infer() ==
      "[5]");
  CHECK(OneNode("Bitcast", {{"type", DataType::kInt32}}).input({5}).infer() ==
        "[5]");
  CHECK(contains(
      OneNode("Bitcast", {{"type", DataType::kDouble}}).input({3}).infer(),
      "the last dimension of [3] must be 2"));
}

TEST_CASE("BroadcastTo has the shape it is given") {
  CHECK(OneNode("BroadcastTo")
            .input({3, 1})
            .constant(Tensor::vector<int32_t>({2, 3, 4}))
            .infer() == "[2,3,4]");
  CHECK(
      OneNode("BroadcastTo").input({3}).input({2}, DataType::kInt32).infer() ==
      "[?,?]");
  CHECK(contains(OneNode("BroadcastTo")
                     .input({3})
                     .constant(Tensor::vector<int32_t>({2}))
                     .infer(),
                 "[3] cannot be broadcast to [2]"));
}

}  // namespace tagflow::graph
