#include "graph/functions/extended.h"

#include <algorithm>

namespace tagflow::graph {
namespace {

// The function that it extends, if the library has it and it has fewer results:
// so a cycle of extensions ends.
const FunctionRef* smaller_function(const FunctionLibrary& library,
                                    const FunctionDef& function) {
  const FunctionRef* smaller = extended_function(function);
  if (smaller == nullptr) return nullptr;
  const FunctionDef* found = library.find(smaller->name);
  const size_t results = function.signature.outputs.size();
  return found != nullptr && found->signature.outputs.size() < results
             ? smaller
             : nullptr;
}

bool begins_with(const std::vector<DataType>& types,
                 const std::vector<DataType>& first) {
  return first.size() <= types.size() &&
         std::equal(first.begin(), first.end(), types.begin());
}

}  // namespace

bool has_own_frame(std::string_view op, const AttrMap& attrs) {
  const auto it = attrs.find(kOwnFrameAttr);
  if (it == attrs.end() || !op.ends_with("PartitionedCall")) return false;
  const bool* value = it->second.get_if<bool>();
  return value != nullptr && *value;
}

bool has_own_frame(const Node& call) {
  return has_own_frame(call.op(), call.attrs());
}

const FunctionRef* extended_function(const FunctionDef& function) {
  const auto it = function.attrs.find(kExtendsAttr);
  return it == function.attrs.end() ? nullptr
                                    : it->second.get_if<FunctionRef>();
}

std::string_view name_of_body(const FunctionLibrary& library,
                              const FunctionDef& function) {
  std::string_view name = function.name();
  for (const FunctionDef* at = &function;;) {
    const FunctionRef* smaller = smaller_function(library, *at);
    if (smaller == nullptr) return name;
    name = smaller->name;
    at = library.find(name);
  }
}

Result<FunctionInstance> least_extension(const FunctionLibrary& library,
                                         FunctionInstance function,
                                         size_t results, const Limits& limits) {
  for (;;) {
    const FunctionRef* smaller = smaller_function(library, function.function());
    if (smaller == nullptr) return function;
    TAGFLOW_ASSIGN(FunctionInstance other,
                   FunctionInstance::bind(library, *smaller, limits));
    if (other.arg_types() != function.arg_types() ||
        !begins_with(function.result_types(), other.result_types()))
      return invalid_argument(
          "function \"{}\" extends \"{}\", which has other arguments or "
          "results",
          function.name(), other.name());
    if (other.result_types().size() < results) return function;
    function = std::move(other);
  }
}

}  // namespace tagflow::graph
