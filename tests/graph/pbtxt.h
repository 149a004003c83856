// GraphDefs as text, composed of short pieces, and checks of their errors.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph/analysis/validate.h"
#include "graph/file/graphdef.h"

namespace tagflow::graph::pbtxt {

inline std::string node(const std::string& name, const std::string& op,
                        const std::string& rest = "") {
  return "node { name: '" + name + "' op: '" + op + "' " + rest + " } ";
}

// Inputs, separated by spaces.
inline std::string in(const std::string& inputs) {
  std::string text;
  size_t at = 0;
  while (true) {
    const size_t end = inputs.find(' ', at);
    text += "input: '" + inputs.substr(at, end - at) + "' ";
    if (end == inputs.npos) return text;
    at = end + 1;
  }
}

inline std::string attr(const std::string& name, const std::string& value) {
  return "attr { key: '" + name + "' value { " + value + " } } ";
}

inline std::string type(const std::string& name, const std::string& dtype) {
  return attr(name, "type: " + dtype);
}

// A Const; `tensor` is what its TensorProto has besides the dtype.
inline std::string constant(const std::string& name, const std::string& dtype,
                            const std::string& tensor) {
  return node(name, "Const",
              type("dtype", dtype) + attr("value", "tensor { dtype: " + dtype +
                                                       " " + tensor + " }"));
}

inline std::string scalar(const std::string& name, const std::string& dtype,
                          const std::string& value) {
  return constant(name, dtype, "tensor_shape {} " + value);
}

// A shape: dims("2 -1 3").
inline std::string dims(const std::string& sizes) {
  std::string text;
  size_t at = 0;
  while (at < sizes.size()) {
    const size_t end = std::min(sizes.find(' ', at), sizes.size());
    text += "dim { size: " + sizes.substr(at, end - at) + " } ";
    at = end + 1;
  }
  return text;
}

inline std::string placeholder(const std::string& name,
                               const std::string& dtype,
                               const std::string& sizes) {
  return node(
      name, "Placeholder",
      type("dtype", dtype) + attr("shape", "shape { " + dims(sizes) + "}"));
}

inline const std::string kX = scalar("x", "DT_FLOAT", "float_val: 1");
inline const std::string kI = scalar("i", "DT_INT32", "int_val: 1");
inline const std::string kP = scalar("p", "DT_BOOL", "bool_val: true");
inline const std::string kS = scalar("s", "DT_STRING", "string_val: 'a'");
inline const std::string kFrame = attr("frame_name", "s: 'f'");
inline const std::string kFrameG = attr("frame_name", "s: 'g'");

constexpr Code kInvalid = Code::kInvalidArgument;
constexpr Code kTooMuch = Code::kResourceExhausted;

// A way to be wrong, and how it is told.
struct Row {
  std::string text;
  Code code;
  std::string message;  // contained in the error's
  Limits limits = {};
};

// Added to a graph that was checked, it is refused as it is alone.
inline void check_as_piece(const Graph& piece, const Status& alone,
                           Limits limits) {
  Graph grown;
  const Result<Node*> ground = grown.add("_ground", "NoOp", {});
  REQUIRE(ground.ok());
  ++limits.max_nodes;
  GrowingCheck growing(limits);
  REQUIRE(growing.run(grown).ok());
  Status status = grown.extend(piece);
  if (!status.ok()) return;  // as where it is read
  status = growing.run(grown);
  CHECK(status.code() == alone.code());
  if (status.code() != Code::kResourceExhausted)
    CHECK(status.message() == alone.message());
}

inline void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.text);
    Result<Graph> graph = read_graphdef_text(row.text, row.limits);
    const Status status =
        graph.ok() ? validate(*graph, row.limits) : graph.status();
    CHECK_MESSAGE(status.code() == row.code, status.to_string());
    CHECK_MESSAGE(status.message().find(row.message) != std::string_view::npos,
                  status.to_string());
    if (graph.ok()) check_as_piece(*graph, status, row.limits);
  }
}

}  // namespace tagflow::graph::pbtxt
