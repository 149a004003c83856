// The model with its data and its train step, and its uses.
//
//   batches of words -> loss -> gradients, of a length of at most 5 -> Adam
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "apps/examples/g2p/lexicon.h"
#include "apps/shared/training/trainer.h"
#include "graph/graph.h"

namespace tagflow::g2p {

struct TaskOptions {
  int64_t units = 128;
  int64_t embedding = 64;
  int64_t batch = 64;
  int64_t epochs = 1;  // over which the learning rate falls to 0
  double learning_rate = 3e-3;
  int width = 4;  // of the beam
  uint64_t seed = 1;
};

// The fetches of a search.
struct Search {
  std::string phonemes;  // int32 [n, width, L]
  std::string scores;    // float [n, width]
};

struct Task {
  graph::Graph graph;
  training::Trainee trainee;
  Search greedy, beam;
};

// Returns InvalidArgument if a part of the lexicon has no words, or an
// option is invalid.
Result<Task> make_task(const TaskOptions& options,
                       std::shared_ptr<const Lexicon> lexicon);

struct Pronunciation {
  Phonemes phonemes;
  float log_probability = 0;
};
// The best pronunciation of each word. Returns errors of the run, and
// InvalidArgument if a word has other letters than a to z. REQUIRES: as for
// Session::run().
Result<std::vector<Pronunciation>> pronounce(
    actors::Session& session, const Search& search,
    const std::vector<std::string>& spellings,
    const actors::RunOptions& run = {});

// The errors in the pronunciations of all words of a part. Returns errors of
// the runs. REQUIRES: as for Session::run().
Result<ErrorCount> count_errors(actors::Session& session, const Search& search,
                                const Lexicon& lexicon, Part part,
                                const actors::RunOptions& run = {});

}  // namespace tagflow::g2p
