// A queue and the ops on it, without an engine.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/state/queue.h"
#include "tests/devices/state/calls.h"

namespace tagflow::devices {

using Types = std::vector<DataType>;

inline Types with_handle(const Types& types) {
  Types all = types;
  all.insert(all.begin(), DataType::kResource);
  return all;
}

// A queue, and the ops on it.
struct TestedQueue {
  explicit TestedQueue(std::string_view op, Types component_types,
                       AttrMap attrs = {})
      : TestedQueue(op, component_types, component_types, std::move(attrs)) {}
  // `types` are those that go in and out.
  TestedQueue(std::string_view op, Types declared, Types types, AttrMap attrs)
      : put("QueueEnqueueV2", with_handle(types), {{"Tcomponents", types}}),
        put_many("QueueEnqueueManyV2", with_handle(types),
                 {{"Tcomponents", types}}),
        take("QueueDequeueV2", {DataType::kResource},
             {{"component_types", types}}),
        take_many("QueueDequeueManyV2", {DataType::kResource, DataType::kInt32},
                  {{"component_types", types}}),
        take_up_to("QueueDequeueUpToV2",
                   {DataType::kResource, DataType::kInt32},
                   {{"component_types", types}}) {
    attrs.emplace("component_types", declared);
    attrs.emplace("shared_name", "q");
    Result<Outputs> made = call_op(state, op, {}, std::move(attrs));
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    handle = (*made)[0];
  }

  std::vector<Tensor> inputs(std::vector<Tensor> values) const {
    values.insert(values.begin(), handle);
    return values;
  }
  Status must_put(std::vector<Tensor> values) const {
    return Call(put, inputs(std::move(values))).start().status();
  }
  Status close(bool cancels = false) {
    return call_op(state, "QueueCloseV2", {handle},
                   {{"cancel_pending_enqueues", cancels}})
        .status();
  }
  int size() {
    return (*call_op(state, "QueueSizeV2", {handle}))[0]
        .scalar_value<int32_t>();
  }
  int take_int() const {
    Call call(take, {handle});
    return call.start().output().scalar_value<int32_t>();
  }
  std::string describe_state() const {
    return state_object<Queue>(*handle.data<ResourceHandle>())
        ->describe_state();
  }

  ResourceManager state;
  Tensor handle;
  const TestedOp put, put_many, take, take_many, take_up_to;
};

}  // namespace tagflow::devices
