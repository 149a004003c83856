// Op functions: variables and queues.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

// What names a piece of state that lives longer than a step.
struct StateAttrs {
  std::string container = {};
  std::string shared_name = {};
};

// A reference to a variable's storage; assign() before reading.
inline Output variable(const Scope& s, DataType dtype, PartialShape shape,
                       StateAttrs a = {}) {
  return s.op("VariableV2", {},
              {{"dtype", dtype},
               {"shape", std::move(shape)},
               {"container", std::move(a.container)},
               {"shared_name", std::move(a.shared_name)}});
}
inline Output assign(const Scope& s, const Output& ref, const Input& value) {
  return s.op("Assign", {ref, value});
}
inline Output assign_add(const Scope& s, const Output& ref,
                         const Input& value) {
  return s.op("AssignAdd", {ref, value});
}
inline Output assign_sub(const Scope& s, const Output& ref,
                         const Input& value) {
  return s.op("AssignSub", {ref, value});
}

// A handle to a variable.
inline Output var_handle(const Scope& s, DataType dtype, PartialShape shape,
                         StateAttrs a = {}) {
  return s.op("VarHandleOp", {},
              {{"dtype", dtype},
               {"shape", std::move(shape)},
               {"container", std::move(a.container)},
               {"shared_name", std::move(a.shared_name)}});
}
inline Output read_variable(const Scope& s, const Output& handle,
                            DataType dtype) {
  return s.op("ReadVariableOp", {handle}, {{"dtype", dtype}});
}
inline Output assign_variable(const Scope& s, const Output& handle,
                              const Input& value) {
  return s.op("AssignVariableOp", {handle, value});
}
inline Output assign_add_variable(const Scope& s, const Output& handle,
                                  const Input& value) {
  return s.op("AssignAddVariableOp", {handle, value});
}
inline Output assign_sub_variable(const Scope& s, const Output& handle,
                                  const Input& value) {
  return s.op("AssignSubVariableOp", {handle, value});
}

struct QueueAttrs {
  std::vector<PartialShape> shapes = {};  // of the components; {}: any
  int64_t capacity = -1;                  // < 0: unbounded
  StateAttrs state = {};
};
inline Output fifo_queue(const Scope& s, std::vector<DataType> components,
                         QueueAttrs a = {}) {
  return s.op("FIFOQueueV2", {},
              {{"component_types", std::move(components)},
               {"shapes", std::move(a.shapes)},
               {"capacity", a.capacity},
               {"container", std::move(a.state.container)},
               {"shared_name", std::move(a.state.shared_name)}});
}
inline Output queue_enqueue(const Scope& s, const Output& queue,
                            const Inputs& components) {
  return s.op("QueueEnqueueV2", Inputs{queue}.add(components));
}
inline OpResult queue_dequeue(const Scope& s, const Output& queue,
                              std::vector<DataType> components) {
  return s.op("QueueDequeueV2", {queue},
              {{"component_types", std::move(components)}});
}
inline Output queue_close(const Scope& s, const Output& queue,
                          bool cancel_pending = false) {
  return s.op("QueueCloseV2", {queue},
              {{"cancel_pending_enqueues", cancel_pending}});
}
inline Output queue_size(const Scope& s, const Output& queue) {
  return s.op("QueueSizeV2", {queue});
}

}  // namespace tagflow::graph::ops
