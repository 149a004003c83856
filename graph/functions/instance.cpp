#include "graph/functions/instance.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "graph/attr_hash.h"
#include "graph/functions/ports.h"

namespace tagflow::graph {
namespace {

bool is_identity_def(const NodeDef& node) {
  return node.op == "Identity" && node.inputs.size() == 1;
}

// The maximum number of values in a function's attributes, including those of
// nested functions.
constexpr size_t kMostValues = size_t(1) << 12;

// Subtracts 1 from `left` for each value, down to the maximum depth.
Status check_extent(const AttrMap& attrs, const Limits& limits, int depth,
                    size_t& left) {
  if (depth > limits.max_attr_depth)
    return error(Code::kResourceExhausted,
                 "functions nest deeper than {} in its attributes",
                 limits.max_attr_depth);
  const auto functions = functions_of(attrs);
  if (attrs.size() + functions.size() > left)
    return error(Code::kResourceExhausted,
                 "its attributes, with those of functions in them, have more "
                 "than {} values",
                 kMostValues);
  left -= attrs.size() + functions.size();
  for (const FunctionRef* function : functions)
    TAGFLOW_RETURN_IF_ERROR(
        check_extent(function->attrs, limits, depth + 1, left));
  return {};
}

}  // namespace

Result<FunctionInstance> FunctionInstance::bind(const FunctionLibrary& library,
                                                const FunctionRef& reference,
                                                const Limits& limits) {
  FunctionInstance instance;
  instance.library_ = &library;
  instance.function_ = library.find(reference.name);
  if (instance.function_ == nullptr)
    return error(Code::kNotFound, "no function \"{}\" in the library",
                 reference.name);
  const OpDef& signature = instance.function_->signature;
  const auto about = [&](Status status) {
    return std::move(status).with_prefix(
        fmt::format("function \"{}\": ", reference.name));
  };
  // Undeclared attributes that begin with _ are about the calling node.
  for (const auto& [name, value] : reference.attrs)
    if (!name.starts_with('_') || signature.find_attr(name) != nullptr)
      instance.attrs_.emplace(name, value);
  for (const AttrDef& attr : signature.attrs) {
    if (attr.default_value)
      instance.attrs_.emplace(attr.name, *attr.default_value);
    if (!instance.attrs_.contains(attr.name))
      return invalid_argument("function \"{}\" needs an attribute \"{}\"",
                              reference.name, attr.name);
  }
  size_t left = kMostValues;
  Status status = check_extent(instance.attrs_, limits, 0, left);
  const auto collect = [&](const std::vector<ArgDef>& args,
                           std::vector<DataType>& types) -> Status {
    for (const ArgDef& arg : args) {
      TAGFLOW_ASSIGN(const auto more, types_of(arg, instance.attrs_));
      types.insert(types.end(), more.begin(), more.end());
    }
    return {};
  };
  if (status.ok()) status = collect(signature.inputs, instance.arg_types_);
  if (status.ok()) status = collect(signature.outputs, instance.result_types_);
  if (!status.ok()) return about(std::move(status));
  return instance;
}

std::vector<int> FunctionInstance::passed_arguments() const {
  const OpDef& signature = function_->signature;
  std::vector<int> passed(result_types_.size(), -1);
  // Only if each argument and result is one tensor.
  if (signature.inputs.size() != arg_types_.size() ||
      signature.outputs.size() != result_types_.size())
    return passed;
  // The meaning of a name: an argument, or for an Identity, the name of its
  // input, until that is resolved.
  struct Meaning {
    int argument = -1;
    std::string_view input = {};
  };
  std::unordered_map<std::string_view, Meaning> meanings;
  for (size_t k = 0; k < signature.inputs.size(); ++k)
    meanings.try_emplace(signature.inputs[k].name, Meaning{int(k)});
  for (const NodeDef& node : function_->nodes)
    if (is_identity_def(node))
      meanings.try_emplace(node.name,
                           Meaning{-1, split_tensor(node.inputs[0]).name});
  std::vector<Meaning*> path;
  for (size_t i = 0; i < passed.size(); ++i) {
    const auto ret = function_->ret.find(signature.outputs[i].name);
    if (ret == function_->ret.end()) continue;
    path.clear();
    std::string_view name = split_tensor(ret->second).name;
    for (auto at = meanings.find(name); at != meanings.end();
         at = meanings.find(name)) {
      Meaning& meaning = at->second;
      passed[i] = meaning.argument;
      if (meaning.input.empty()) break;
      path.push_back(&meaning);
      // So each is visited once, and cycles end.
      name = std::exchange(meaning.input, {});
    }
    for (Meaning* meaning : path) meaning->argument = passed[i];
  }
  return passed;
}

bool operator==(const FunctionInstance& a, const FunctionInstance& b) {
  return &a.function() == &b.function() && a.attrs() == b.attrs();
}

size_t hash_of(const FunctionInstance& instance) {
  AttrHash hash;
  hash.add_text(instance.name());
  hash.add_attrs(instance.attrs());
  return hash.value();
}

}  // namespace tagflow::graph
