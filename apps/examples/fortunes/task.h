// The model with its data and its train step, and a graph that draws texts.
#pragma once

#include <string>
#include <vector>

#include "actors/session/session.h"
#include "apps/examples/fortunes/text.h"
#include "apps/shared/training/trainer.h"
#include "graph/graph.h"

namespace tagflow::fortunes {

struct TaskOptions {
  int64_t units = 128;
  int64_t embedding = 32;
  int64_t streams = 32;
  int64_t piece = 64;  // the length of back-propagation
  int64_t epochs = 1;  // over which the learning rate falls to 0
  double learning_rate = 5e-3;
  uint64_t seed = 1;
};

struct Task {
  graph::Graph graph;
  training::Trainee trainee;
};

// Makes the training graph. Returns InvalidArgument if the texts are too
// few, or an option is invalid.
Result<Task> make_task(const TaskOptions& options, std::vector<Symbols> texts);

// Makes the graph that draws texts: feeds "temperature", fetches "text".
Result<graph::Graph> make_sampler(const TaskOptions& options, int64_t count,
                                  int64_t longest);

// Draws texts by a run of the sampler. Returns errors of the run. REQUIRES: as
// for Session::run(); temperature > 0
Result<std::vector<std::string>> draw_texts(actors::Session& session,
                                            float temperature,
                                            const actors::RunOptions& run = {});

}  // namespace tagflow::fortunes
