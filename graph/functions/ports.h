// Maps arguments of ops to flat ports of nodes, and parses texts of inputs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace tagflow::graph {

// The types of an argument, given its op's attributes. InvalidArgument if the
// attributes do not determine them.
Result<std::vector<DataType>> types_of(const ArgDef& arg, const AttrMap& attrs);

// An argument that is one tensor.
ArgDef one_tensor(std::string name, DataType dtype);

// A run of flat ports.
struct PortRange {
  size_t first = 0;
  size_t count = 0;
};

// The ports of the output with that name. InvalidArgument if there is none.
Result<PortRange> find_output(const OpDef& op, const AttrMap& attrs,
                              std::string_view name);
// The inverse: "name:index". REQUIRES: the port exists.
Result<std::string> output_text(const OpDef& op, const AttrMap& attrs,
                                size_t port);

// "a", "a:b" or "a:b:2", split; the index is 0 if it is omitted.
struct TensorText {
  std::string_view name;
  std::string_view output;  // empty if omitted
  std::optional<int> index;
};

TensorText split_tensor(std::string_view text);

// Adds "^node" to the inputs of a node for each of `sources`: "node", or a
// tensor "node:port".
void add_controls(const std::vector<std::string>& sources,
                  std::vector<std::string>& inputs);

}  // namespace tagflow::graph
