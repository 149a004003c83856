// Training as the programs do it: steps and evaluations of a session, with
// progress on stderr, and with files from which the same command goes on.
//
//   FOLDER/model.ckpt-STEP.*  checkpoints, and FOLDER/checkpoint, their list
//   FOLDER/history.csv        what was measured in each step
//   FOLDER/loss.png           the same, drawn
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "apps/common/training.h"

namespace tagflow::training {

// A number that is measured of a batch.
struct Metric {
  std::string name;    // "loss": for lines and files
  std::string tensor;  // "loss:0", a float scalar
};

// What is fed in a step, in the order of the feeds.
using BatchFn = std::function<Result<std::vector<Tensor>>(int64_t index)>;

// A signature of the graph, and its batches. The first tensor of a batch has a
// row for each example.
struct Phase {
  std::vector<std::string> feeds = {};
  std::vector<Metric> metrics = {};  // the loss is the first
  BatchFn batch = {};
};

// What is trained: names in the session's graph, and where data is from.
struct Trainee {
  std::string init;   // an operation that gives variables their first values
  std::string train;  // an operation that moves them once
  Phase step;         // its batches are of the steps, counted from 1
  // With metrics of the same names, whose means over batches 0 to
  // evaluation_batches - 1 are those of the data set: each batch counts as much
  // as it has rows. No batches: no evaluation.
  Phase evaluation;
  int64_t evaluation_batches = 0;
  int64_t steps_per_epoch = 1;        // after which it is evaluated
  std::string examples = "examples";  // what the rows are: "images"
};

struct TrainerOptions {
  apps::TrainingOptions training;  // `save` names the folder
  int64_t epochs = 1;  // in total, with those of the training that goes on
  int64_t report_every = 100;  // steps between lines of progress
  int64_t stop_at = 0;         // a step to end after, for now; 0: none
  bool is_fresh = false;       // begins anew; removes what FOLDER has
};

// How a training ended.
struct Outcome {
  int64_t step = 0;    // the last one
  int64_t steps = 0;   // of all epochs
  double seconds = 0;  // that the steps took here, evaluations apart
  double examples_per_second = 0;
  // The metrics of the evaluation after the last step; empty where there was
  // none.
  std::vector<float> test;
  // A signal that ended it is one, and so is what cannot be saved at the end;
  // what cannot be saved before is a warning.
  apps::Failure failure;
};

// Goes on from the newest checkpoint of the folder, or begins, and runs until
// all epochs are over, or a signal comes, whose first one ends it after the
// step in hand. The last step is saved. Damaged checkpoints are passed over
// with a warning, but it fails where none is whole, or one is of another model.
// REQUIRES: nobody else uses the session; no Interruptible lives.
Outcome train(actors::Session& session, const Trainee& trainee,
              const TrainerOptions& options);

// The metrics of all batches of the evaluation. Errors of its runs.
Result<std::vector<float>> evaluate(actors::Session& session,
                                    const Trainee& trainee,
                                    const actors::RunOptions& run = {});

}  // namespace tagflow::training
