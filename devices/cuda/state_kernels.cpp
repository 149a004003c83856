// Containers and variables whose contents are in a GPU's memory: kernels of the
// CPU, which move and change elements by an ElementMover only.
#include "devices/cuda/cuda_kernel.h"
#include "devices/training_rules.h"
#include "graph/op_registry.h"

namespace tagflow::devices {
namespace {

// Inputs that are no handles, and not the gradient.
std::vector<int> scalars_of(const graph::OpDef& op) {
  std::vector<int> scalars;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const auto& input = op.inputs[i];
    const bool is_state = input.is_ref || input.dtype == DataType::kResource;
    if (!is_state && input.name != "grad" && input.name != "delta")
      scalars.push_back(int(i));
  }
  return scalars;
}

struct RegisterOptimizers {
  KernelRegistry& registry;

  template <template <class> class Rule>
  void add(const char* name) {
    for (const char* kind : {"Apply", "ResourceApply"}) {
      const std::string op = fmt::format("{}{}", kind, name);
      if (const auto* def = graph::OpRegistry::global().find_or_null(op))
        add_borrowed_state(registry, op, {.inputs = scalars_of(*def)},
                           {{"T", kCudaFloats}});
    }
  }
};

}  // namespace

void register_cuda_container_kernels(KernelRegistry& registry) {
  const auto add = [&](const char* op, std::vector<int> steers) {
    add_borrowed_state(registry, op, {.inputs = std::move(steers)}, {},
                       /*hands_on=*/true);
  };
  // Lists.
  for (const char* op : {"EmptyTensorList", "TensorListReserve"})
    add(op, {0, 1});
  for (const char* op :
       {"TensorListPushBack", "TensorListLength", "TensorListElementShape"})
    add(op, {});
  for (const char* op :
       {"TensorListPopBack", "TensorListSetItem", "TensorListResize",
        "TensorListStack", "TensorListFromTensor"})
    add(op, {1});
  for (const char* op :
       {"TensorListGetItem", "TensorListGather", "TensorListSplit"})
    add(op, {1, 2});
  add("TensorListConcat", {});
  add("TensorListConcatV2", {1, 2});
  for (const char* op : {"TensorListScatter", "TensorListScatterV2"})
    add(op, {1, 2, 3});
  add("TensorListScatterIntoExistingList", {2});
  // Stacks.
  add("StackV2", {0});
  for (const char* op :
       {"StackPushV2", "StackPopV2", "StackCloseV2", "PersistentStack",
        "PersistentStackPush", "PersistentStackPushZero", "PersistentStackPop",
        "PersistentStackDrop", "PersistentStackSize"})
    add(op, {});
  add("PersistentStackPopOrZero", {1});
  // Arrays.
  add("TensorArrayV3", {0});
  for (const char* op : {"TensorArrayGradV3", "TensorArrayConcatV3",
                         "TensorArraySizeV3", "TensorArrayCloseV3"})
    add(op, {});
  for (const char* op : {"TensorArrayWriteV3", "TensorArrayReadV3",
                         "TensorArrayGatherV3", "TensorArrayScatterV3"})
    add(op, {1});
  for (const char* op : {"TensorArrayGradWithShape", "TensorArraySplitV3"})
    add(op, {2});
  // Their gradients.
  add("ZeroVariant", {});
  for (const char* op : {"GradientListAdd", "GradientListPut",
                         "GradientListAddRows", "GradientListPutRows"})
    add(op, {1});
  for (const char* op :
       {"GradientListGet", "GradientListTake", "GradientListDrop",
        "GradientListGetRows", "GradientListTakeRows", "GradientListGetConcat"})
    add(op, {1, 2});
  add("GradientListAddSplit", {2});
  add_borrowed_state(registry, "AddN", {}, {{"T", {DataType::kVariant}}});
}

void register_cuda_variable_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"VarHandleOp", "Variable", "VariableV2", "IsVariableInitialized",
        "VarIsInitializedOp", "VariableShape", "DisableCopyOnRead",
        "DestroyResourceOp", "TemporaryVariable", "DestroyTemporaryVariable",
        "ReadVariableOp", "_Dereference", "Assign", "AssignVariableOp"})
    add_borrowed_state(registry, op);
  for (const char* op : {"AssignAdd", "AssignSub"})
    add_borrowed_state(registry, op, {}, {{"T", kCudaNumbers}});
  for (const char* op : {"AssignAddVariableOp", "AssignSubVariableOp"})
    add_borrowed_state(registry, op, {}, {{"dtype", kCudaNumbers}});
  rules::visit_all(RegisterOptimizers{registry});
}

}  // namespace tagflow::devices
