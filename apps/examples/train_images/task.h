// A network, its data and its train step, as one graph.
//
//   images, uint8 --> about 0 --> model --> logits --> loss --> gradients
//                                             |                    |
//   labels, uint8 ----------------------------+         Adam <-----+
//                                             v
//                                         accuracy
//
// The evaluation is the same with other inputs and without dropout.
//
// Several devices each have a replica of all but the data, and a part of each
// batch (autodiff/train/replicas.h).
#pragma once

#include <string>
#include <vector>

#include "apps/examples/train_images/data.h"
#include "apps/examples/train_images/models.h"
#include "graph/graph.h"

namespace tagflow::train_images {

// How replicas train one model.
enum class Style : uint8_t {
  kRing,    // each has the variables; an all-reduce of the gradients
  kServer,  // the first device has the variables; synchronous
  kAsync,   // the same, asynchronous
  kBackup,  // synchronous, without the last gradients of each step
};

struct TaskOptions {
  Model model = Model::kMlp;
  int64_t batch = 64;
  int64_t epochs = 1;  // over which the learning rate falls to 0
  double learning_rate = 1e-3;
  bool is_augmented = false;
  uint64_t seed = 1;
  // A replica on each; with none, or one, there are no replicas.
  std::vector<std::string> devices = {};
  Style style = Style::kRing;
  int backups = 1;  // kBackup: replicas whose gradients a step may do without
};

struct Task {
  graph::Graph graph;
  training::Trainee trainee;
};

// Returns InvalidArgument if the training set does not fill a batch, the two
// sets have images of different sizes, the replicas cannot have equal parts of
// a batch, or there are no more replicas than backups.
Result<Task> make_task(const TaskOptions& options, io::ImageSet train,
                       io::ImageSet test);

}  // namespace tagflow::train_images
