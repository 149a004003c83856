#include "autodiff/stand_in.h"

#include <algorithm>

#include "graph/node_types.h"
#include "graph/op_registry.h"

namespace tagflow::autodiff {

Result<size_t> stand_in_outputs(const graph::Node& node) {
  if (!node.attrs().contains(kStandsForAttr)) return size_t(0);
  TAGFLOW_ASSIGN(const auto op, node.attr<std::string>(kStandsForAttr));
  TAGFLOW_ASSIGN(const auto outputs, node.attr<int64_t>(kStandInOutputsAttr));
  const auto fail = [&](std::string_view why) {
    return invalid_argument(
        "[gradients] node \"{}\" cannot stand for a \"{}\": {}", node.name(),
        op, why);
  };
  const graph::OpDef* def = graph::OpRegistry::global().find_or_null(op);
  if (node.op() != "IdentityN" || def == nullptr || !def->is_stateful)
    return fail("only an IdentityN does, and for a stateful op");
  if (outputs < 1 || outputs > node.num_inputs())
    return fail("it does not have that many outputs");
  AttrMap attrs;
  for (const auto& [name, value] : node.attrs())
    if (name.starts_with('_') && def->find_attr(name.substr(1)) != nullptr)
      attrs.emplace(name.substr(1), value);
  const auto types =
      graph::infer_types(*def, node.inputs().subspan(size_t(outputs)), attrs);
  if (!types.ok()) return fail(types.status().message());
  if (!std::ranges::equal(types->outputs,
                          node.output_dtypes().first(size_t(outputs))))
    return fail("its outputs have other types");
  return size_t(outputs);
}

}  // namespace tagflow::autodiff
