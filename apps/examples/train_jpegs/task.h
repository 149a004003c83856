// A classifier of JPEG pictures, with its input, as one graph.
//
//   names --> queue --> reader --> parse, decode, resize --> queue --> batch
//         (shuffled)                                    (shuffled)      |
//                                                                       v
//   test records, fed --> map_fn: parse, decode, resize --> CNN <-- 0 to 1
//                                                            |
//                            logits --> loss, accuracy --> Adam
//
// Checkpoints have the queues, and how far the reader has come.
#pragma once

#include <string>

#include "apps/examples/train_jpegs/records.h"
#include "apps/shared/training/trainer.h"
#include "graph/graph.h"

namespace tagflow::train_jpegs {

struct TaskOptions {
  int64_t batch = 64;
  int64_t epochs = 1;  // over which the learning rate falls to 0
  double learning_rate = 2e-3;
  int64_t side = 32;    // pictures are scaled to this height and width
  int64_t threads = 2;  // that read and decode
  uint64_t seed = 1;
};

struct Task {
  graph::Graph graph;
  training::Trainee trainee;
};

// InvalidArgument if the training set does not fill a batch, or a side is less
// than 8.
Result<Task> make_task(const TaskOptions& options, DataSet data);

}  // namespace tagflow::train_jpegs
