// Batches of elements of similar length, made with queues: for recurrent
// networks, whose cost is that of the longest element of a batch.
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
  // Capacity of each bucket's queue in elements, and of the queue of batches.
  // At least batch_size.
  int64_t capacity = 32;
  // Whether the remainder of a bucket at the end makes a smaller batch.
  bool smaller_final_batch = false;
  // Pads unknown dimensions of the components with zeros to the longest element
  // of a batch. Otherwise their shapes must be known.
  bool pad = false;
  // Threads that compute elements and put them into buckets: from 1 to 1024.
  int64_t threads = 1;
};

// One batch, to be fetched.
struct Buckets {
  Output bucket;       // its number, an int32 scalar
  Outputs components;  // with a new first dimension: the elements
  std::vector<QueueRunnerDef> runners;
};

// Puts elements with the same bucket number, below `count`, into one batch.
// `bucket` is an int32 scalar, which is computed for each element together with
// `components`; an element with a number out of range is dropped. The input
// ends with an error OutOfRange of its source, and then the batches end too.
// `count` is from 1 to 10000. The scope fails with InvalidArgument if an
// option, the type of `bucket`, or the known shape of a component is invalid;
// then nothing in the result is valid. Thread-compatible together with the
// graph.
Buckets bucket(const Scope& s, const Input& bucket, const Outputs& components,
               int64_t count, const BucketOptions& options);

struct LengthBuckets {
  Output lengths;  // int32 or int64, as given: a vector
  Outputs components;
  std::vector<QueueRunnerDef> runners;
};
// Buckets by length, an int32 or int64 scalar: bucket i has the lengths from
// boundaries[i - 1] up to, but without, boundaries[i]; the last one has all
// longer ones. `boundaries` are positive and ascending.
LengthBuckets bucket_by_sequence_length(const Scope& s, const Output& length,
                                        const Outputs& components,
                                        const std::vector<int64_t>& boundaries,
                                        const BucketOptions& options);

}  // namespace tagflow::graph
