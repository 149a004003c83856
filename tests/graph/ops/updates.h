// Nodes that change a variable of either kind, and why they are refused.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "graph/builder/builder.h"

namespace tagflow::graph {

// A graph with a variable "v" of [4,3] and a slot of another shape, both by
// reference or by handle.
class Updates {
 public:
  explicit Updates(bool is_reference)
      : is_reference_(is_reference), s_(graph_) {}

  Output state(PartialShape shape) {
    return is_reference_ ? ops::reference_variable(s_, DataType::kFloat, shape)
                         : ops::variable(s_, DataType::kFloat, shape).handle;
  }
  Output given(PartialShape shape, DataType type = DataType::kFloat) {
    return ops::placeholder(s_, type, shape);
  }
  Output indices(PartialShape shape) { return given(shape, DataType::kInt32); }
  // "" or why the node is refused.
  std::string add(const std::string& op, const Inputs& inputs,
                  AttrMap attrs = {}) {
    s_.op(is_reference_ ? op : "Resource" + op, inputs, std::move(attrs));
    return std::string(s_.status().message());
  }

  bool is_reference() const { return is_reference_; }

 private:
  const bool is_reference_;
  Graph graph_;
  Scope s_;
};

inline void expect_part(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

// Runs `body` on a new graph of each kind.
template <class F>
void for_both(F body) {
  for (const bool is_reference : {false, true}) {
    INFO("by reference: ", is_reference);
    Updates updates(is_reference);
    body(updates);
  }
}

}  // namespace tagflow::graph
