// Reads of variables, by handle and by reference. The gradient of a variable is
// that of its value.
#include "autodiff/rule.h"
#include "autodiff/rules/array_helpers.h"
#include "autodiff/rules/forward.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {
namespace {

void resource_gather_rule(RuleContext& r) {
  const Scope& s = r.scope();
  const auto batch_dims = r.attr<int64_t>("batch_dims");
  if (batch_dims == 0) return set_gathered_rows(r);
  const Output axis = ops::constant(s, batch_dims);
  r.set(0, gather_gradient(s, r.grad(), r.input(1),
                           r.input_shape(0, DataType::kInt64), {axis, axis}));
}

// Each read of a variable counts with the value that it saw: assigned values
// are constants.
void add_variable_reasons(RuleTable& table) {
  no_gradient(table,
              "IsVariableInitialized VarIsInitializedOp TemporaryVariable "
              "VarHandleOp Variable VariableV2 _VarHandlesOp",
              "it is a variable, or says whether there is one");
  no_gradient(
      table,
      "Assign AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp "
      "AssignVariableOp CountUpTo DestroyResourceOp DisableCopyOnRead "
      "ResourceCountUpTo ResourceScatterAdd ResourceScatterDiv "
      "ResourceScatterMax ResourceScatterMin ResourceScatterMul "
      "ResourceScatterNdAdd ResourceScatterNdMax ResourceScatterNdMin "
      "ResourceScatterNdSub ResourceScatterNdUpdate ResourceScatterSub "
      "ResourceScatterUpdate ResourceStridedSliceAssign ScatterAdd "
      "ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd "
      "ScatterNdMax ScatterNdMin ScatterNdSub ScatterNdUpdate ScatterSub "
      "ScatterUpdate StridedSliceAssign",
      "it changes a variable");
  no_gradient(table, "VariableShape", "its result depends on shapes alone");
  no_gradient(table,
              "DeleteSessionTensor GetSessionHandle GetSessionHandleV2 "
              "GetSessionTensor",
              "what is kept may have come in any step");
  no_gradient(table,
              "_ListState _RestoreRunCounts _RestoreState _RunCounts "
              "_SaveActor _SaveObject _SaveTable _StateHandle",
              "it belongs to a checkpoint");
}

}  // namespace

void add_variable_rules(RuleTable& table) {
  table.add({"ReadVariableOp", "_Dereference", "DestroyTemporaryVariable"},
            [](RuleContext& r) { r.set(0, r.slices()); });
  table.add("ResourceGather", resource_gather_rule);
  table.add("ResourceGatherNd",
            [](RuleContext& r) { set_gathered_vectors(r); });
  table.add({"_ReadVariablesAhead", "_CheckReadAhead"}, fused_rule);
  add_variable_reasons(table);
  table.add_forward(
      {"ReadVariableOp", "_Dereference", "DestroyTemporaryVariable"},
      hand_on_first);
}

}  // namespace tagflow::autodiff
