// What shape inference says of one node: its outputs' shapes as text.
//
//   CHECK(infer("Reshape", {{2, 6}, ints({4, -1})}) == "[4,3]");
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

inline constexpr int64_t kAny = PartialShape::kUnknown;

// A placeholder of a shape, or a constant.
struct InferInput {
  InferInput(PartialShape shape, DataType type = DataType::kFloat)
      : value(std::move(shape)), dtype(type) {}
  InferInput(std::initializer_list<int64_t> dims)
      : InferInput(PartialShape(dims)) {}
  InferInput(Tensor constant) : value(constant), dtype(constant.dtype()) {}

  std::variant<PartialShape, Tensor> value;
  DataType dtype;
};

inline const PartialShape kUnknownShape;

inline Tensor ints(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

// Integers of which only the shape is known.
inline InferInput unknown_ints(PartialShape shape) {
  return InferInput(std::move(shape), DataType::kInt32);
}

// The shapes of the outputs as text, or the error.
inline std::string infer(std::string op, const std::vector<InferInput>& inputs,
                         AttrMap attrs = {}) {
  Graph graph;
  std::vector<Endpoint> endpoints;
  for (const InferInput& input : inputs) {
    const auto* constant = std::get_if<Tensor>(&input.value);
    AttrMap source{{"dtype", input.dtype}};
    if (constant) {
      source["value"] = *constant;
    } else {
      source["shape"] = std::get<PartialShape>(input.value);
    }
    const auto node =
        graph.add(graph.unique_name("x"), constant ? "Const" : "Placeholder",
                  {}, std::move(source));
    REQUIRE(node.ok());
    endpoints.push_back({*node, 0});
  }
  const auto node = graph.add("op", op, endpoints, std::move(attrs));
  if (!node.ok()) return node.status().to_string();
  std::string text;
  for (int i = 0; i < (*node)->num_outputs(); ++i)
    text += (*node)->output_shape(i).to_string();
  return text;
}

// Fails the test case unless the text is an InvalidArgument with that part.
inline void expect_refused(const std::string& text, std::string_view part) {
  CHECK(text.starts_with("InvalidArgument"));
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

}  // namespace tagflow::graph
