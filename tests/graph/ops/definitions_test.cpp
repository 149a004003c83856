// Properties in the definitions of ops, beside ports and attributes.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/op_registry.h"

using namespace tagflow;
using namespace tagflow::graph;

namespace {

const OpDef& definition(std::string_view name) {
  const OpDef* op = OpRegistry::global().find_or_null(name);
  REQUIRE_MESSAGE(op != nullptr, name);
  return *op;
}

template <class Check>
void for_each_op(const Check& check) {
  for (const std::string& name : OpRegistry::global().names()) {
    CAPTURE(name);
    check(definition(name));
  }
}

bool has(const std::vector<ArgDef>& ports, std::string_view name) {
  return std::ranges::any_of(
      ports, [&](const ArgDef& port) { return port.name == name; });
}

}  // namespace

TEST_CASE("an op's definition says what kind of work a node does") {
  const auto expect = [](Work work, std::vector<std::string_view> ops) {
    for (const std::string_view op : ops)
      CHECK_MESSAGE(definition(op).work == work, op);
  };
  expect(Work::kElementwise, {"AddN", "Sqrt", "Relu", "Cast", "Assign",
                              "_FusedElementwise", "EluGrad"});
  expect(Work::kTranscendental,
         {"Tanh", "Pow", "Elu", "Softmax", "FusedBatchNormGradV3", "LRN"});
  expect(Work::kFree, {"Const", "Placeholder", "Identity", "IdentityN", "NoOp",
                       "Switch", "RefSwitch", "_SwitchN", "Merge", "Enter",
                       "RefExit", "LoopCond", "ControlTrigger", "FakeParam",
                       "_Arg", "_Call", "_Retval", "GuaranteeConst"});
  expect(Work::kNoData,
         {"Shape", "Reshape", "EnsureShape", "Assert", "StackPushV2",
          "TensorListReserve", "TensorArrayReadV3", "GradientListPut",
          "BroadcastGradientArgs"});
  expect(Work::kMove, {"ConcatV2", "Transpose", "Pad", "Tile", "ZerosLike",
                       "TensorListStack", "GradientListPutRows"});
  expect(Work::kPick,
         {"GatherV2", "StridedSlice", "Unpack", "ResizeNearestNeighbor"});
  expect(Work::kReduce, {"Sum", "All", "ArgMax", "UnsortedSegmentSum",
                         "BiasAddGrad", "Where"});
  expect(Work::kSort, {"TopKV2", "UniqueV2", "InTopK"});
  expect(Work::kProduct, {"MatMul", "BatchMatMulV3", "Einsum", "_PackedMatMul",
                          "_FusedMatMul"});
  expect(Work::kConvolution, {"Conv2D", "Conv3DBackpropInputV2",
                              "Conv2DBackpropFilter", "_FusedConv2D"});
  expect(Work::kDepthwise,
         {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter"});
  expect(Work::kWindow, {"MaxPool", "MaxPoolGradV2", "AvgPool3DGrad",
                         "MaxPoolGradWithArgmax"});
}

TEST_CASE("an op has the ports that its work is estimated by") {
  for_each_op([](const OpDef& op) {
    if (op.name.starts_with("Test")) return;  // of other tests
    switch (op.work) {
      case Work::kReduce:
      case Work::kSort:
        CHECK_FALSE(op.inputs.empty());
        break;
      case Work::kConvolution:
      case Work::kDepthwise:
        CHECK(op.inputs.size() >= 2);
        CHECK(op.find_attr("strides") != nullptr);
        break;
      case Work::kWindow:
        CHECK((op.find_attr("ksize") != nullptr || has(op.inputs, "ksize")));
        break;
      case Work::kElementwise:
      case Work::kTranscendental:
      case Work::kFree:
      case Work::kNoData:
      case Work::kMove:
      case Work::kPick:
      case Work::kProduct:
        break;
    }
  });
}

TEST_CASE("an op that forwards its input has the input's type") {
  for_each_op([&](const OpDef& op) {
    if (!op.forwards || op.name.starts_with("Test")) return;
    REQUIRE(op.inputs.size() == 1);
    REQUIRE(op.outputs.size() == 1);
    ArgDef input = op.inputs[0];
    input.name = op.outputs[0].name;
    CHECK(input == op.outputs[0]);
    CHECK(op.work == Work::kFree);
  });
  for (const char* name :
       {"GuaranteeConst", "Identity", "LoopCond", "PlaceholderWithDefault",
        "PreventGradient", "RefIdentity", "Snapshot", "StopGradient"})
    CHECK_MESSAGE(definition(name).forwards, name);
}

TEST_CASE("an op that may be fused has ports of one type, and no more") {
  for_each_op([&](const OpDef& op) {
    if (!op.is_fusible) return;
    CHECK_FALSE(op.is_stateful);
    CHECK(op.inputs.size() >= 1);
    CHECK(op.inputs.size() <= 2);
    CHECK(op.outputs.size() == 1);
    REQUIRE(op.attrs.size() == 1);
    for (const auto* ports : {&op.inputs, &op.outputs})
      for (const ArgDef& port : *ports) {
        CHECK(port.type_attr == op.attrs[0].name);
        CHECK(port.number_attr.empty());
        CHECK_FALSE(port.is_ref);
      }
  });
  // One of those that are defined together.
  for (const char* name :
       {"Sqrt", "Exp", "Floor", "Neg", "Abs", "Square", "Softsign", "AddV2",
        "Add", "Mul", "Sub", "Maximum", "Minimum", "SquaredDifference",
        "TanhGrad", "Relu", "ReluGrad", "Softplus"})
    CHECK_MESSAGE(definition(name).is_fusible, name);
  for (const char* name : {"FloorDiv", "Pow", "AddN", "Relu6Grad", "Sin"})
    CHECK_FALSE_MESSAGE(definition(name).is_fusible, name);
}

TEST_CASE("an op with dead outputs of live inputs is control flow") {
  std::vector<std::string> names;
  for_each_op([&](const OpDef& op) {
    if (op.may_die) names.push_back(op.name);
  });
  CHECK(names == std::vector<std::string>{"Merge", "RefMerge", "RefSwitch",
                                          "Switch", "_HostRecv", "_Recv",
                                          "_SwitchN"});
}
