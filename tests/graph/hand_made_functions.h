// Functions written out by hand for tests.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/function.h"

namespace tagflow::graph {

// "name: OP(input, ...)", with attributes.
inline NodeDef body_node(std::string name, std::string op,
                         std::vector<std::string> inputs = {},
                         AttrMap attrs = {}) {
  return {std::move(name), std::move(op), std::move(inputs), "",
          std::move(attrs)};
}

inline NodeDef body_const(std::string name, Tensor value) {
  const DataType type = value.dtype();
  return body_node(std::move(name), "Const", {},
                   {{"value", std::move(value)}, {"dtype", type}});
}

// A binary op of int32.
inline NodeDef body_int(std::string name, std::string op, std::string a,
                        std::string b) {
  return body_node(std::move(name), std::move(op), {std::move(a), std::move(b)},
                   {{"T", DataType::kInt32}});
}

// Arguments and results as in OpDefBuilder: "x: int32".
inline FunctionDef function(std::string name, std::vector<std::string> args,
                            std::vector<std::string> results,
                            std::vector<NodeDef> nodes,
                            std::map<std::string, std::string> ret,
                            std::vector<std::string> attrs = {}) {
  OpDefBuilder signature(std::move(name));
  for (const std::string& arg : args) signature.input(arg);
  for (const std::string& result : results) signature.output(result);
  for (const std::string& attr : attrs) signature.attr(attr);
  FunctionDef made;
  made.signature = signature.build();
  made.nodes = std::move(nodes);
  made.ret = std::move(ret);
  return made;
}

// The value of an attribute that names a function.
inline FunctionRef call_of(std::string name, AttrMap attrs = {}) {
  return {std::move(name), std::move(attrs)};
}

// Attributes of If, While, ...: all arguments and results are of int32.
inline AttrMap int_ports(size_t args, size_t results, AttrMap more = {}) {
  more["Tin"] = std::vector<DataType>(args, DataType::kInt32);
  more["Tout"] = std::vector<DataType>(results, DataType::kInt32);
  return more;
}

}  // namespace tagflow::graph
