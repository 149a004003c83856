// Restores, initialises and saves the variables of programs that train, with
// the options for that.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/checkpoint/saver.h"
#include "actors/session/session.h"
#include "apps/shared/program/exit_code.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

class RunFigures;  // apps/shared/runs/run_figures.h

// As given on the command line.
struct CheckpointOptions {
  std::string save;        // a folder; or empty
  std::string save_every;  // "N" or "Ns"; empty: every ten minutes
  int keep = 5;
  std::string save_on;  // "workers", "master", or empty: whoever can
  std::string restore;  // a checkpoint; or empty
  std::vector<std::string> init;
  // Counts what is saved and restored; may be null. Not a switch.
  std::shared_ptr<RunFigures> figures;
};

// Declares --save, --save-every, --keep and --save-on, with the values in
// `options` as defaults, or all of the options, for programs that do not know
// how a model is initialised. `options` must outlive the parsing.
void add_saving_options(CLI::App& app, CheckpointOptions& options);
void add_checkpoint_options(CLI::App& app, CheckpointOptions& options);

// What --save-on says. InvalidArgument, a usage error, for another text.
Result<actors::ShardWriters> parse_save_on(const std::string& text);

// The interval of --save-every: one of the two is zero. Returns
// InvalidArgument, a usage error, if the text is neither a positive whole
// number nor a positive time.
struct SaveInterval {
  int64_t steps = 0;
  std::chrono::nanoseconds time{0};
};
Result<SaveInterval> parse_save_every(const std::string& text);

// The error of a run, with a hint if a variable or a table had no value and
// no node of --init initialises it.
Status with_hint_of_init(Status status, const CheckpointOptions& options);

// The checkpoints of a session that runs steps, counted from 1. Thread-
// compatible; the session must outlive it.
class StepCheckpoints {
 public:
  // Returns a usage error for options that are invalid in any case.
  // `has_steps`: whether several steps are run; `has_workers`: whether on a
  // cluster.
  static Status check(const CheckpointOptions& options, bool has_steps,
                      bool has_workers);

  // Restores the folder's newest checkpoint if there is one, else that of
  // --restore, else the model's own one. If no variable has a value then, runs
  // the nodes of --init, with `run` and `feeds`; they must exist in any case.
  // Else it runs what these initialize of iterators, since a checkpoint has
  // only their places. Then saves a first checkpoint if there was none and some
  // variable has a value, so that a program that is killed before the next one
  // resumes with the same random numbers. `model` is the model's description of
  // its state.
  Failure start(const CheckpointOptions& options, actors::Session& session,
                const graph::SavedState& model, const actors::RunOptions& run,
                const std::vector<actors::Feed>& feeds = {});
  // The number of steps, including those of the resumed run.
  int64_t last_step() const { return step_; }
  bool is_saving() const { return saver_ != nullptr; }
  // Call this after each step: saves if that is due. An error of saving is a
  // warning, since steps can go on and a later save may succeed.
  void after_step(int64_t step);
  // Waits for a save in progress; an error is a warning. Call this after a
  // failed run, whose state may be that of half a step.
  void stop();
  // Saves the last step, and waits until it is written. Returns the error of
  // that.
  Status finish();

 private:
  void warn(const Status& status);
  // Says once what the checkpoints lack.
  void warn_of_left_out();

  std::unique_ptr<actors::Saver> saver_;
  int64_t step_ = 0;
  bool is_failing_ = false;  // the last save failed, with a warning
  bool has_said_left_out_ = false;
  std::optional<int64_t> said_step_;  // the last saved step at that time
};

}  // namespace tagflow::apps
