// What a run starts from, and what it leaves for the next one: the options that
// restore, initialise and save variables, of all programs that train.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/checkpoint/saver.h"
#include "actors/session/session.h"
#include "apps/common/exit_code.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

// As given on the command line.
struct TrainingOptions {
  std::string save;        // a folder; or empty
  std::string save_every;  // "N" or "Ns"; empty: every ten minutes
  int keep = 5;
  std::string restore;  // what is read; or empty
  std::vector<std::string> init;
};

// Declares --save, --save-every and --keep, with what `options` says as
// defaults; or all of the options, for whoever does not know how a model
// begins. `options` must outlive the parsing.
void add_saving_options(CLI::App& app, TrainingOptions& options);
void add_training_options(CLI::App& app, TrainingOptions& options);

// How often --save-every asks to save: one of the two is zero. InvalidArgument
// where the text is neither a whole number nor a time, positive: a usage error.
struct SaveInterval {
  int64_t steps = 0;
  std::chrono::nanoseconds time{0};
};
Result<SaveInterval> parse_save_every(const std::string& text);

// The error of a run, with what to do about it where a variable or a table had
// no value, and no node of --init gives it one.
Status with_hint_of_init(Status status, const TrainingOptions& options);

// The variables of a session that runs steps, counted from 1. Thread-
// compatible; the session must outlive it.
class Training {
 public:
  // What is wrong with the options, where that can be told at once: a usage
  // error. `has_steps`: whether several steps are run.
  static Status check(const TrainingOptions& options, bool has_steps);

  // The folder's newest checkpoint is restored, where there is one, else what
  // --restore says, else the model's own one is there, where it has one. Where
  // no variable has a value then, the nodes of --init run, with `run`; they
  // must be there in any case. Then the first checkpoint is saved, where there
  // was none, and some variable has a value: so whoever is killed before the
  // next one goes on with the same random numbers. `model` is what the model
  // says of its state.
  Failure start(const TrainingOptions& options, actors::Session& session,
                const graph::SavedState& model, const actors::RunOptions& run);
  // How many steps there were, with those of the run that is resumed.
  int64_t last_step() const { return step_; }
  bool is_saving() const { return saver_ != nullptr; }
  // After each step: saves where that is due. An error of saving is a warning,
  // as steps can go on, and a later save may succeed.
  void after_step(int64_t step);
  // Waits for what is being written; an error is a warning. For a run that has
  // failed: what it came to last may be half a step.
  void stop();
  // Saves the last step, and waits until it is written; an error is one.
  Status finish();

 private:
  void warn(const Status& status);

  std::unique_ptr<actors::Saver> saver_;
  int64_t step_ = 0;
  bool is_failing_ = false;           // to save, which was said
  std::optional<int64_t> said_step_;  // what was saved last then
};

}  // namespace tagflow::apps
