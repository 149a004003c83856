// Batches of elements of about the same length, by queues: for recurrent
// networks, which compute as long as the longest of a batch.
//
//   const Buckets b = bucket_by_sequence_length(
//       s, length, {tokens, label}, {10, 20}, {.batch_size = 32});
//   b.lengths, b.components[0]   // of one batch, padded
//
// The graph fills its queues while the queue runners of `b` run:
// actors/session/queue_runners.h starts them.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/control_flow.h"
#include "graph/builder/ops_queue.h"
#include "graph/file/queue_runner.h"

namespace tagflow::graph {

struct BucketOptions {
  int64_t batch_size = 1;  // positive
  // Of the queue of each bucket in elements, and of the queue of batches. At
  // least batch_size.
  int64_t capacity = 32;
  // At the end, whether what is left of a bucket makes a batch that is smaller.
  bool smaller_final_batch = false;
  // Pads the components' unknown dimensions with zeros, as far as the longest
  // element of a batch. Otherwise their shapes must be known.
  bool pad = false;
  // That compute elements and put them into buckets: from 1 to 1024.
  int64_t threads = 1;
};

// What runs fetch: one batch.
struct Buckets {
  Output bucket;       // its number, an int32 scalar
  Outputs components;  // with a new first dimension: the elements
  std::vector<QueueRunnerDef> runners;
};

// The elements with the same number of bucket, of `count` buckets, go into one
// batch. `bucket` is an int32 scalar, computed anew for each element with
// `components`; one that is out of range drops the element. Elements end with
// an error OutOfRange of what computes them; the batches do, then. `count` is
// from 1 to 10000. InvalidArgument, of the scope, where an option, the type of
// `bucket`, or what is known of a component's shape is none of these; then
// nothing of the result is valid. Thread-compatible, as the graph.
Buckets bucket(const Scope& s, const Input& bucket, const Outputs& components,
               int64_t count, const BucketOptions& options);

struct LengthBuckets {
  Output lengths;  // int32 or int64, as given: a vector
  Outputs components;
  std::vector<QueueRunnerDef> runners;
};
// The same by length, an int32 or int64 scalar: bucket i has those from
// boundaries[i - 1] on that are less than boundaries[i], the last one all
// longer ones. `boundaries` are positive and ascend.
LengthBuckets bucket_by_sequence_length(const Scope& s, const Output& length,
                                        const Outputs& components,
                                        const std::vector<int64_t>& boundaries,
                                        const BucketOptions& options);

}  // namespace tagflow::graph
