#include "graph/stored_gradient.h"

#include <algorithm>

namespace tagflow::graph {
namespace {

using Inputs = std::vector<int64_t>;

// Whether the types of the arguments, or results, are these.
bool has_types(const std::vector<ArgDef>& args,
               const std::vector<DataType>& types) {
  return std::ranges::equal(args, types, [](const ArgDef& arg, DataType type) {
    return arg.dtype == type && arg.number_attr.empty() && !arg.is_ref;
  });
}

}  // namespace

Result<StoredGradient> stored_gradient(const Node& node,
                                       const FunctionLibrary& library) {
  StoredGradient stored;
  TAGFLOW_ASSIGN(stored.function, node.attr<std::string>(kStoredGradientAttr));
  TAGFLOW_ASSIGN(const auto outputs, node.attr<int64_t>(kStoredOutputsAttr));
  TAGFLOW_ASSIGN(stored.inputs, node.attr<Inputs>(kStoredInputsAttr));
  const auto fail = [&](std::string_view why) {
    return invalid_argument(
        "[gradients] node \"{}\" cannot have the stored gradient \"{}\": {}",
        node.name(), stored.function, why);
  };
  if (node.op() != "IdentityN") return fail("it is not an IdentityN");
  if (outputs < 1 || outputs > node.num_inputs())
    return fail("it does not have that many outputs");
  stored.outputs = size_t(outputs);
  const FunctionDef* const function = library.find(stored.function);
  if (function == nullptr)
    return error(
        Code::kNotFound,
        "[gradients] node \"{}\" has the stored gradient \"{}\", which "
        "is not in the library",
        node.name(), stored.function);
  std::vector<DataType> args, results;
  for (const DataType type : node.input_dtypes())
    args.push_back(remove_ref(type));
  for (const int64_t input : stored.inputs) {
    if (input < 0 || input >= outputs ||
        std::ranges::count(stored.inputs, input) != 1)
      return fail("it does not have these inputs, once each");
    results.push_back(args[size_t(input)]);
  }
  if (!has_types(function->signature.inputs, args) ||
      !has_types(function->signature.outputs, results))
    return fail("the function has other arguments or results");
  return stored;
}

bool has_stored_gradient(const Node& node, size_t input) {
  const auto inputs = node.attr<Inputs>(kStoredInputsAttr);
  return inputs.ok() && std::ranges::count(*inputs, int64_t(input)) > 0;
}

}  // namespace tagflow::graph
