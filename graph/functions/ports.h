// Which of a node's flat ports its op's arguments are, and the texts that name
// what a node reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace tagflow::graph {

// The types that an argument stands for, given its op's attributes.
// InvalidArgument where these do not say.
Result<std::vector<DataType>> types_of(const ArgDef& arg, const AttrMap& attrs);

// An argument that is one tensor.
ArgDef one_tensor(std::string name, DataType dtype);

// A run of flat ports.
struct PortRange {
  size_t first = 0;
  size_t count = 0;
};

// Those of the output of that name. InvalidArgument where there is none.
Result<PortRange> find_output(const OpDef& op, const AttrMap& attrs,
                              std::string_view name);
// The other way round: "name:index". REQUIRES: there is such a port.
Result<std::string> output_text(const OpDef& op, const AttrMap& attrs,
                                size_t port);

// "a", "a:b" or "a:b:2" taken apart; the index is 0 where there is none.
struct TensorText {
  std::string_view name;
  std::string_view output;  // empty where there is none
  std::optional<int> index;
};

TensorText split_tensor(std::string_view text);

// Adds to what a node reads "^node" for each of `sources`: "node", or a tensor
// "node:port".
void add_controls(const std::vector<std::string>& sources,
                  std::vector<std::string>& inputs);

}  // namespace tagflow::graph
