#include "graph/functions/ports.h"

#include <charconv>

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

TensorText split_tensor(std::string_view text) {
  TensorText split;
  const size_t first = text.find(':');
  split.name = text.substr(0, first);
  if (first == std::string_view::npos) return split;
  std::string_view rest = text.substr(first + 1);
  const size_t second = rest.find(':');
  std::string_view number =
      second == std::string_view::npos ? rest : rest.substr(second + 1);
  int index = 0;
  const char* end = number.data() + number.size();
  if (!number.empty() &&
      std::from_chars(number.data(), end, index).ptr == end) {
    split.index = index;
    if (second != std::string_view::npos) split.output = rest.substr(0, second);
  } else {
    split.output = rest.substr(0, second);
  }
  return split;
}

void add_controls(const std::vector<std::string>& sources,
                  std::vector<std::string>& inputs) {
  for (const std::string& source : sources)
    inputs.push_back("^" + source.substr(0, source.rfind(':')));
}

}  // namespace tagflow::graph
