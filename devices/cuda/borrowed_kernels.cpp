// CPU kernels that serve a GPU unchanged: those that read only shapes, and
// those that plan how elements are moved; see ElementMover.
#include "devices/cuda/cuda_kernel.h"

namespace tagflow::devices {
namespace {

using Runs = CudaKernel::Runs;

std::vector<DataType> integers() {
  return {DataType::kInt32, DataType::kInt64};
}

// Kernels of shapes, and those that pass tensors on.
void register_on_host(KernelRegistry& registry) {
  const auto add = [&](const char* op, Steering steering = {},
                       TypeLimits types = {}) {
    add_borrowed(registry, op,
                 {.runs = Runs::kOnHost,
                  .steering = std::move(steering),
                  .types = std::move(types)});
  };
  for (const char* op :
       {"Const", "Placeholder", "PlaceholderV2", "PlaceholderWithDefault",
        "Snapshot", "GuaranteeConst", "NoOp", "EnsureShape", "Abort", "Shape",
        "ShapeN", "Size", "Rank", "Squeeze"})
    add(op);
  for (const char* op :
       {"Identity", "IdentityN", "StopGradient", "PreventGradient"})
    add_borrowed(registry, op, {.runs = Runs::kOnHost, .takes_handles = true});
  for (const char* op : {"Reshape", "ExpandDims"}) add(op, {.inputs = {1}});
  for (const char* op :
       {"BroadcastArgs", "BroadcastGradientArgs", "ConcatOffset",
        "InvertPermutation", "Range", "LinSpace", "_ForTripCount"})
    add(op, Steering::everything());
  // If one of many elements can be invalid, a GPU would detect it too late.
  for (const char* op : {"Div", "FloorDiv", "TruncateDiv", "FloorMod", "Mod",
                         "TruncateMod", "Pow"})
    add(op, Steering::everything(), {{"T", integers()}});
}

// Kernels that only move elements, and products.
void register_by_mover(KernelRegistry& registry) {
  const auto add = [&](const char* op, std::vector<int> steers) {
    add_borrowed(registry, op, {.steering = {.inputs = std::move(steers)}});
  };
  add("ConcatV2", {-1});
  add("Concat", {0});
  add("Pack", {});
  add("Unpack", {});
  add("Split", {0});
  add("SplitV", {1, 2});
  add("Slice", {1, 2});
  add("StridedSlice", {1, 2, 3});
  add("Transpose", {1});
  for (const char* op : {"ReverseV2", "Reverse"}) add(op, {1});
  add("Fill", {0});
  add("Tile", {1});
  add("BroadcastTo", {1});
  for (const char* op : {"Pad", "PadV2"}) add(op, {1});
  add("StridedSliceGrad", {0, 1, 2, 3});
  for (const char* op : {"ZerosLike", "OnesLike"}) add(op, {});
  // cuBLAS reads only the GPU's memory.
  for (const char* op : {"MatMul", "BatchMatMul", "BatchMatMulV2"})
    add_borrowed(registry, op,
                 {.types = {{"T", cuda_floats()}}, .takes_values = false});
}

}  // namespace

void register_cuda_borrowed_kernels(KernelRegistry& registry) {
  register_on_host(registry);
  register_by_mover(registry);
}

}  // namespace tagflow::devices
