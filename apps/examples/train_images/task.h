// A network, its data and its train step, as one graph.
//
//   images, uint8 --> about 0 --> model --> logits --> loss --> gradients
//                                             |                    |
//   labels, uint8 ----------------------------+         Adam <-----+
//                                             v
//                                         accuracy
//
// The evaluation is the same with other inputs and without dropout.
#pragma once

#include "apps/examples/train_images/data.h"
#include "apps/examples/train_images/models.h"
#include "graph/graph.h"

namespace tagflow::train_images {

struct TaskOptions {
  Model model = Model::kMlp;
  int64_t batch = 64;
  int64_t epochs = 1;  // over which the learning rate falls to 0
  double learning_rate = 1e-3;
  bool is_augmented = false;
  uint64_t seed = 1;
};

struct Task {
  graph::Graph graph;
  training::Trainee trainee;
};

// Returns InvalidArgument if the training set does not fill a batch, or the
// two sets have images of different sizes.
Result<Task> make_task(const TaskOptions& options, io::ImageSet train,
                       io::ImageSet test);

}  // namespace tagflow::train_images
