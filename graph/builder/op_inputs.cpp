#include "graph/builder/op_inputs.h"

#include <map>

namespace tagflow::graph {

namespace {

const std::string& list_attr(const ArgDef& arg) {
  return arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
}

// The length of a list given by `attrs`, or -1.
int64_t known_length(const ArgDef& arg, const AttrMap& attrs) {
  auto it = attrs.find(list_attr(arg));
  if (it == attrs.end()) return -1;
  if (const auto* number = it->second.get_if<int64_t>()) return *number;
  if (const auto* types = it->second.get_if<std::vector<DataType>>())
    return int64_t(types->size());
  return it->second.get_if<EmptyList>() != nullptr ? 0 : -1;
}

// How many of the inputs belong to each argument.
Result<std::vector<int64_t>> lengths(const OpDef& def, size_t given,
                                     const AttrMap& attrs) {
  std::vector<int64_t> result;
  std::string open;  // the list attribute to infer from the inputs
  int64_t open_args = 0;
  int64_t fixed = 0;
  for (const ArgDef& arg : def.inputs) {
    const bool is_list = !list_attr(arg).empty();
    const int64_t length = is_list ? known_length(arg, attrs) : 1;
    result.push_back(length);
    if (length >= 0) {
      fixed += length;
    } else {
      if (open_args > 0 && open != list_attr(arg))
        return invalid_argument(
            "[{}] give attribute \"{}\" or \"{}\": {} inputs may be shared "
            "among its lists in several ways",
            def.name, open, list_attr(arg), given);
      open = list_attr(arg);
      ++open_args;
    }
  }
  const int64_t rest = int64_t(given) - fixed;
  if (rest < 0 || (open_args == 0 ? rest != 0 : rest % open_args != 0))
    return invalid_argument("[{}] {} inputs do not match its definition",
                            def.name, given);
  for (int64_t& length : result) {
    if (length < 0) length = rest / open_args;
  }
  return result;
}

// The type given by attribute `name`, or by its default.
DataType type_of_attr(const OpDef& def, const AttrMap& attrs,
                      const std::string& name) {
  auto it = attrs.find(name);
  if (it != attrs.end()) {
    const auto* type = it->second.get_if<DataType>();
    return type == nullptr ? DataType::kInvalid : *type;
  }
  const AttrDef* attr = def.find_attr(name);
  if (attr == nullptr || !attr->default_value) return DataType::kInvalid;
  const auto* type = attr->default_value->get_if<DataType>();
  return type == nullptr ? DataType::kInvalid : *type;
}

}  // namespace

Result<std::vector<InputType>> literal_types(const OpDef& def,
                                             const Inputs& inputs,
                                             const AttrMap& attrs) {
  TAGFLOW_ASSIGN(const std::vector<int64_t> counts,
                 lengths(def, inputs.size(), attrs));
  std::vector<InputType> types;
  std::vector<const ArgDef*> args;  // of each input
  // By type attribute: the known type, and that of weak literals alone.
  std::map<std::string_view, DataType> given, fallback;
  for (size_t a = 0; a < def.inputs.size(); ++a) {
    const ArgDef& arg = def.inputs[a];
    for (int64_t i = 0; i < counts[a]; ++i) {
      const Input& input = inputs[args.size()];
      types.push_back({arg.name, arg.dtype});
      args.push_back(&arg);
      if (arg.type_attr.empty()) continue;
      if (!input.is_weak()) {
        given.emplace(arg.type_attr, input.dtype());
      } else if (input.literal().dtype() == DataType::kDouble) {
        fallback.emplace(arg.type_attr, DataType::kFloat);
      }
    }
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& attr = args[i]->type_attr;
    if (attr.empty() || !inputs[i].is_weak()) continue;
    const auto known = given.find(attr);
    const auto alone = fallback.find(attr);
    if (!attrs.contains(attr) && known != given.end()) {
      types[i].dtype = known->second;
    } else if (!attrs.contains(attr) && alone != fallback.end()) {
      types[i].dtype = alone->second;
    } else {
      types[i].dtype = type_of_attr(def, attrs, attr);
    }
  }
  return types;
}

}  // namespace tagflow::graph
