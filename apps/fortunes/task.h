// The model with its data and its train step, and what draws texts.
#pragma once

#include <string>
#include <vector>

#include "actors/session/session.h"
#include "apps/fortunes/text.h"
#include "apps/training/trainer.h"
#include "graph/graph.h"

namespace tagflow::fortunes {

struct TaskOptions {
  int64_t units = 128;
  int64_t embedding = 32;
  int64_t streams = 32;
  int64_t piece = 64;  // so far a gradient goes back
  int64_t epochs = 1;  // over which the learning rate falls to 0
  double learning_rate = 5e-3;
  uint64_t seed = 1;
};

struct Task {
  graph::Graph graph;
  training::Trainee trainee;
};

// What trains. InvalidArgument where the texts are too few, or an option makes
// no sense.
Result<Task> make_task(const TaskOptions& options, std::vector<Symbols> texts);

// What draws texts: fed with "temperature", fetches "text".
Result<graph::Graph> make_sampler(const TaskOptions& options, int64_t count,
                                  int64_t longest);

// The texts that a run of the sampler has drawn. Errors of the run. REQUIRES:
// as for Session::run(); temperature > 0
Result<std::vector<std::string>> draw_texts(actors::Session& session,
                                            float temperature,
                                            const actors::RunOptions& run = {});

}  // namespace tagflow::fortunes
