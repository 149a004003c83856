// Containers and variables whose contents are in a GPU's memory: CPU kernels,
// which move and change elements only through an ElementMover.
#include "devices/cuda/cuda_kernel.h"
#include "devices/training_rules.h"
#include "graph/op_registry.h"

namespace tagflow::devices {
namespace {

// Types that may be in a container: those that a GPU can add, since contents
// may be summed, and those that are never added.
std::vector<DataType> held_types() {
  std::vector<DataType> types = cuda_numbers();
  types.insert(types.end(), {DataType::kBool, DataType::kVariant});
  return types;
}

// Inputs that are neither handles nor the gradient.
std::vector<int> scalars_of(const graph::OpDef& op) {
  std::vector<int> scalars;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const graph::ArgDef& input = op.inputs[i];
    const bool is_state = input.is_ref || input.dtype == DataType::kResource;
    if (!is_state && !rules::is_gradient(input.name)) scalars.push_back(int(i));
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
        add_borrowed(registry, op,
                     {.steering = {.inputs = scalars_of(*def)},
                      .types = {{"T", cuda_floats()}},
                      .takes_handles = true});
    }
  }
};

}  // namespace

void register_cuda_container_kernels(KernelRegistry& registry) {
  // `type` is the attribute with the type of the container's elements; null
  // if another op of the same container has it.
  const auto add = [&](const char* op, std::vector<int> steers,
                       const char* type = nullptr) {
    Borrowing how{.steering = {.inputs = std::move(steers)},
                  .hands_on = true,
                  .takes_handles = true};
    if (type != nullptr) how.types = {{type, held_types()}};
    add_borrowed(registry, op, std::move(how));
  };
  // Lists.
  for (const char* op : {"EmptyTensorList", "TensorListReserve"})
    add(op, {0, 1}, "element_dtype");
  for (const char* op :
       {"TensorListPushBack", "TensorListLength", "TensorListElementShape"})
    add(op, {});
  for (const char* op : {"TensorListPopBack", "TensorListSetItem",
                         "TensorListResize", "TensorListStack"})
    add(op, {1});
  add("TensorListFromTensor", {1}, "element_dtype");
  for (const char* op : {"TensorListGetItem", "TensorListGather"})
    add(op, {1, 2});
  add("TensorListSplit", {1, 2}, "element_dtype");
  add("TensorListConcat", {});
  add("TensorListConcatV2", {1, 2});
  for (const char* op : {"TensorListScatter", "TensorListScatterV2"})
    add(op, {1, 2, 3}, "element_dtype");
  add("TensorListScatterIntoExistingList", {2});
  // Stacks.
  add("StackV2", {0});
  for (const char* op :
       {"StackPushV2", "StackPopV2", "StackCloseV2", "PersistentStackPush",
        "PersistentStackPushZero", "PersistentStackPop", "PersistentStackDrop",
        "PersistentStackSize"})
    add(op, {});
  add("PersistentStack", {}, "elem_type");
  add("PersistentStackPopOrZero", {1});
  // Arrays.
  add("TensorArrayV3", {0}, "dtype");
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
    add(op, {1}, "T");
  for (const char* op :
       {"GradientListGet", "GradientListTake", "GradientListDrop",
        "GradientListGetRows", "GradientListTakeRows", "GradientListGetConcat"})
    add(op, {1, 2});
  add("GradientListAddSplit", {2}, "T");
  add_borrowed(registry, "AddN",
               {.types = {{"T", {DataType::kVariant}}}, .takes_handles = true});
}

void register_cuda_variable_kernels(KernelRegistry& registry) {
  const auto add = [&](const char* op, TypeLimits types = {}) {
    add_borrowed(registry, op,
                 {.types = std::move(types), .takes_handles = true});
  };
  for (const char* op :
       {"VarHandleOp", "Variable", "VariableV2", "IsVariableInitialized",
        "VarIsInitializedOp", "VariableShape", "DisableCopyOnRead",
        "DestroyResourceOp", "TemporaryVariable", "DestroyTemporaryVariable",
        "ReadVariableOp", "_Dereference", "Assign", "AssignVariableOp"})
    add(op);
  for (const char* op : {"AssignAdd", "AssignSub"})
    add(op, {{"T", cuda_numbers()}});
  for (const char* op : {"AssignAddVariableOp", "AssignSubVariableOp"})
    add(op, {{"dtype", cuda_numbers()}});
  rules::visit_all(RegisterOptimizers{registry});
}

}  // namespace tagflow::devices
