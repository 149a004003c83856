#include "graph/functions/ports.h"

#include "graph/node_types.h"

namespace tagflow::graph {

Result<std::vector<DataType>> types_of(const ArgDef& arg,
                                       const AttrMap& attrs) {
  if (!arg.type_list_attr.empty())
    return get_attr<std::vector<DataType>>(attrs, arg.type_list_attr);
  DataType type = arg.dtype;
  if (!arg.type_attr.empty()) {
    TAGFLOW_ASSIGN(type, get_attr<DataType>(attrs, arg.type_attr));
  }
  int64_t count = 1;
  if (!arg.number_attr.empty()) {
    TAGFLOW_ASSIGN(count, get_attr<int64_t>(attrs, arg.number_attr));
  }
  if (count < 0 || count > kMaxNodeOutputs)
    return invalid_argument("\"{}\" stands for {} tensors", arg.name, count);
  return std::vector<DataType>(size_t(count),
                               arg.is_ref ? make_ref(type) : type);
}

ArgDef one_tensor(std::string name, DataType dtype) {
  ArgDef arg;
  arg.name = std::move(name);
  arg.dtype = dtype;
  return arg;
}

Result<PortRange> find_output(const OpDef& op, const AttrMap& attrs,
                              std::string_view name) {
  PortRange range;
  for (const ArgDef& output : op.outputs) {
    TAGFLOW_ASSIGN(const auto types, types_of(output, attrs));
    range.first += range.count;
    range.count = types.size();
    if (output.name == name) return range;
  }
  return invalid_argument("{} has no output \"{}\"", op.name, name);
}

Result<std::string> output_text(const OpDef& op, const AttrMap& attrs,
                                size_t port) {
  for (const ArgDef& output : op.outputs) {
    TAGFLOW_ASSIGN(const auto types, types_of(output, attrs));
    if (port < types.size()) return fmt::format("{}:{}", output.name, port);
    port -= types.size();
  }
  return invalid_argument("{} has no output {}", op.name, port);
}

void add_controls(const std::vector<std::string>& sources,
                  std::vector<std::string>& inputs) {
  for (const std::string& source : sources)
    inputs.push_back("^" + source.substr(0, source.rfind(':')));
}

}  // namespace tagflow::graph
