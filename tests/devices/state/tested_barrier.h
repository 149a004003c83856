// A barrier of two float scalars, and the ops on it, without an engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/devices/state/calls.h"

namespace tagflow::devices {

using Types = std::vector<DataType>;

struct TestedBarrier {
  TestedBarrier() {
    Call made(make, {}, &state);
    handle = made.start().output();
  }
  Status insert(int part, std::vector<std::string> keys,
                std::vector<float> values) {
    const TestedOp op(
        "BarrierInsertMany",
        {make_ref(DataType::kString), DataType::kString, DataType::kFloat},
        {{"component_index", part}});
    return Call(op,
                {handle, Tensor::of<std::string>({int64_t(keys.size())}, keys),
                 Tensor::of<float>({int64_t(values.size())}, values)},
                &state)
        .start()
        .status();
  }
  int size(std::string_view op) {
    const TestedOp tested(op, {make_ref(DataType::kString)});
    Call call(tested, {handle}, &state);
    return call.start().output().scalar_value<int32_t>();
  }
  Status close(bool drops) {
    const TestedOp op("BarrierClose", {make_ref(DataType::kString)},
                      {{"cancel_pending_enqueues", drops}});
    return Call(op, {handle}, &state).start().status();
  }

  ResourceManager state;
  const Types types = {DataType::kFloat, DataType::kFloat};
  const TestedOp make{
      "Barrier",
      {},
      {{"component_types", types},
       {"shapes", std::vector<PartialShape>(2, PartialShape::scalar())},
       {"shared_name", "b"}}};
  const TestedOp take{"BarrierTakeMany",
                      {make_ref(DataType::kString), DataType::kInt32},
                      {{"component_types", types}}};
  const TestedOp take_less{"BarrierTakeMany",
                           {make_ref(DataType::kString), DataType::kInt32},
                           {{"component_types", types},
                            {"allow_small_batch", true},
                            {"wait_for_incomplete", true}}};
  Tensor handle;
};

}  // namespace tagflow::devices
