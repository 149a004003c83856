// Op functions: queues.
//
//   const ops::QueueArgs args = {.capacity = 8};
//   const ops::Queue q = ops::fifo_queue(s, {DataType::kFloat}, args);
//   Output put = ops::enqueue(s, q, {x});  // an operation; waits for space
//   Outputs got = ops::dequeue(s, q);      // waits for an element
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/builder/ops_control_flow.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_random.h"

namespace tagflow::graph::ops {

// A queue's handle, and the types of an element's components.
struct Queue {
  Output handle;
  std::vector<DataType> dtypes;
};

struct QueueArgs {
  int64_t capacity = -1;  // elements; negative: unlimited
  // Shapes of all components, or empty. dequeue_many() needs them.
  std::vector<PartialShape> shapes = {};
  std::string container = {};
  std::string shared_name = {};  // empty: the name of the node
};
inline AttrMap queue_attrs(const std::vector<DataType>& dtypes, QueueArgs a) {
  return {{"component_types", dtypes},
          {"shapes", std::move(a.shapes)},
          {"capacity", a.capacity},
          {"container", std::move(a.container)},
          {"shared_name", std::move(a.shared_name)}};
}

inline Queue fifo_queue(const Scope& s, std::vector<DataType> dtypes,
                        QueueArgs a = {}) {
  const Output handle =
      s.op("FIFOQueueV2", {}, queue_attrs(dtypes, std::move(a)));
  return {handle, std::move(dtypes)};
}
// Shapes may have unknown dimensions; elements that are dequeued together are
// padded with zeros in them.
inline Queue padding_fifo_queue(const Scope& s, std::vector<DataType> dtypes,
                                QueueArgs a) {
  const Output handle =
      s.op("PaddingFIFOQueueV2", {}, queue_attrs(dtypes, std::move(a)));
  return {handle, std::move(dtypes)};
}
// Dequeues in random order; at least `min_after_dequeue` elements remain to
// choose from.
inline Queue random_shuffle_queue(const Scope& s, std::vector<DataType> dtypes,
                                  int64_t min_after_dequeue, QueueArgs a = {},
                                  Seeds seeds = {}) {
  AttrMap attrs = queue_attrs(dtypes, std::move(a));
  attrs.insert_or_assign("min_after_dequeue", min_after_dequeue);
  attrs.insert_or_assign("seed", seeds.seed);
  attrs.insert_or_assign("seed2", seeds.seed2);
  const Output handle = s.op("RandomShuffleQueueV2", {}, std::move(attrs));
  return {handle, std::move(dtypes)};
}

// Operations that complete when the elements are in the queue. For
// enqueue_many() the elements are the rows of the components.
inline Output enqueue(const Scope& s, const Queue& q,
                      const Inputs& components) {
  return s.op("QueueEnqueueV2", Inputs{q.handle}.add(components),
              {{"Tcomponents", q.dtypes}});
}
inline Output enqueue_many(const Scope& s, const Queue& q,
                           const Inputs& components) {
  return s.op("QueueEnqueueManyV2", Inputs{q.handle}.add(components),
              {{"Tcomponents", q.dtypes}});
}
// The components of one element, or of n (an int32 scalar) stacked. They fail
// with OutOfRange if a closed queue has too few elements; dequeue_up_to() only
// if it has none.
inline Outputs dequeue(const Scope& s, const Queue& q) {
  return all_outputs(
      s.op("QueueDequeueV2", {q.handle}, {{"component_types", q.dtypes}}));
}
inline Outputs dequeue_many(const Scope& s, const Queue& q, const Input& n) {
  return all_outputs(s.op("QueueDequeueManyV2", {q.handle, n},
                          {{"component_types", q.dtypes}}));
}
inline Outputs dequeue_up_to(const Scope& s, const Queue& q, const Input& n) {
  return all_outputs(s.op("QueueDequeueUpToV2", {q.handle, n},
                          {{"component_types", q.dtypes}}));
}
struct CloseAttrs {
  bool cancel_pending_enqueues = false;
};
// An operation: the queue accepts no further elements.
inline Output close_queue(const Scope& s, const Queue& q, CloseAttrs a = {}) {
  return s.op("QueueCloseV2", {q.handle},
              {{"cancel_pending_enqueues", a.cancel_pending_enqueues}});
}
inline Output queue_size(const Scope& s, const Queue& q) {
  return s.op("QueueSizeV2", {q.handle});
}
inline Output queue_is_closed(const Scope& s, const Queue& q) {
  return s.op("QueueIsClosedV2", {q.handle});
}

}  // namespace tagflow::graph::ops
