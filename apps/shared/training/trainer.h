// The training loop of the programs: steps and evaluations of a session, with
// progress on stderr, and with files from which the same command resumes.
//
//   FOLDER/model.ckpt-STEP.*  checkpoints, and FOLDER/checkpoint, their list
//   FOLDER/history.csv        what was measured in each step
//   FOLDER/loss.svg           the same, drawn
//   FOLDER/subject.txt        what it is a training of
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "apps/shared/live/page_of_session.h"
#include "apps/shared/program/owned_session.h"
#include "apps/shared/runs/step_checkpoints.h"
#include "apps/shared/training/subject.h"
#include "graph/file/queue_runner.h"

namespace tagflow::training {

// A number that is measured for each batch.
struct Metric {
  std::string name;    // "loss": for lines and files
  std::string tensor;  // "loss:0", a float scalar
};

// Returns the feeds' values in a step, in the order of the feeds.
using BatchFn = std::function<Result<std::vector<Tensor>>(int64_t index)>;

// A signature of the graph, and its batches. The first tensor of a batch has
// one row for each example.
struct Phase {
  std::vector<std::string> feeds = {};
  std::vector<Metric> metrics = {};  // the loss is the first
  BatchFn batch = {};
  int64_t rows = 0;  // of each batch; 0: those of its first tensor
};

// A run that is repeated beside the steps, from the first to the last one. Its
// batches are counted from 1, or, after a resumed step k, from k + 1: what it
// had put into a queue ahead of step k comes again, so Trainee::begin should
// empty that queue. `batch` is called by a thread of its own.
struct BesideRun {
  std::vector<std::string> feeds;
  std::vector<std::string> targets;
  BatchFn batch;
};

// What is trained: names in the session's graph, and its data.
struct Trainee {
  Subject subject = {};  // what a resumed training must have, too
  std::string init;      // the operation that initialises variables
  std::string train;     // the operation that updates them once
  Phase step;            // its batches are of the steps, counted from 1
  std::vector<BesideRun> beside = {};
  // What fills the queues of the steps, meanwhile. Checkpoints have what is in
  // the queues, and the last one is taken before these end.
  std::vector<graph::QueueRunnerDef> runners = {};
  // The operation that is run once before steps and `beside`; empty: none.
  std::string begin = {};
  // Has metrics of the same names. Those of the data set are the means over
  // batches 0 to evaluation_batches - 1, weighted by their rows. Without
  // batches there is no evaluation.
  Phase evaluation;
  int64_t evaluation_batches = 0;
  int64_t steps_per_epoch = 1;        // after which it is evaluated
  std::string examples = "examples";  // what the rows are: "images"
  // What is written to event files beside the metrics, whenever progress is
  // reported: numbers, such as the learning rate, and the spread of tensors,
  // such as weights. They need no feeds.
  std::vector<Metric> numbers = {};
  std::vector<Metric> spreads = {};
  // A tensor of the step, what a summary op outputs. Empty: none.
  std::string summary = {};
};

struct TrainerOptions {
  apps::CheckpointOptions checkpoints;  // `save` names the folder
  int64_t epochs = 1;  // in total, including those of the resumed training
  int64_t report_every = 100;  // steps between lines of progress
  int64_t stop_at = 0;         // the step to stop after; 0: none
  bool is_fresh = false;       // starts over: removes the files in FOLDER
  // The folder of event files for TensorBoard: the graph and the steps'
  // metrics in "train", with what nodes did in the second step, and those of
  // evaluations in "test". Empty: none.
  std::string summaries;
  apps::InspectOptions inspect;                // --stop-at is that of steps
  std::shared_ptr<apps::live::LivePage> page;  // null: there is none
};

// How a training ended.
struct Outcome {
  int64_t step = 0;    // the last one
  int64_t steps = 0;   // of all epochs
  double seconds = 0;  // of the steps of this run, without evaluations
  double examples_per_second = 0;
  // The metrics of the evaluation after the last step; empty if there was
  // none.
  std::vector<float> test;
  // A signal that ended it is a failure, and so is a failed save at the end; an
  // earlier failed save is a warning.
  apps::Failure failure;
};

// Resumes from the newest checkpoint of the folder, or begins, and runs until
// all epochs are over, or a first signal ends it after the current step. The
// last step is saved. Damaged checkpoints are skipped with a warning, but it
// fails if all are damaged, one is of another model, or the folder has a
// training of another subject. REQUIRES: nothing
// else uses the session, and no Interruptible lives.
Outcome train(apps::OwnedSession& session, const Trainee& trainee,
              const TrainerOptions& options);

// The same in a session of its own, of that graph. Its errors are failures,
// too.
Outcome train(const graph::Graph& graph, const actors::SessionOptions& session,
              const Trainee& trainee, const TrainerOptions& options);

// The metrics of the last evaluation as a program prints them: lines as
// "test loss: 0.1234", or, as a part of a JSON object, `, "test_loss": 0.1234`.
std::string format_tests(const Outcome& outcome, const Trainee& trainee,
                         bool json);

// The metrics of all batches of the evaluation. Errors of its runs.
Result<std::vector<float>> evaluate(actors::Session& session,
                                    const Trainee& trainee,
                                    const actors::RunOptions& run = {});

}  // namespace tagflow::training
