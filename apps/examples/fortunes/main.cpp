// fortunes: trains a model of characters on Debian's fortunes, and draws texts.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <numbers>
#include <optional>
#include <string>

#include "actors/checkpoint/restore.h"
#include "apps/examples/fortunes/task.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/owned_session.h"
#include "apps/shared/program/program.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/watched_run.h"
#include "apps/shared/training/trainer_options.h"

namespace {

using namespace tagflow;        // NOLINT: a main file
using namespace tagflow::apps;  // NOLINT
using fortunes::Symbols;

struct Options {
  fortunes::TaskOptions task;
  training::TrainerOptions trainer;
  std::string data = "/usr/share/games/fortunes";
  int64_t count = 1;
  int64_t longest = 1000;
  double temperature = 0.7;
  std::optional<uint64_t> draw_seed;
  int workers = 0;
  bool json = false;
};

Failure train(Options& options) {
  Failure failure = training::prepare_trainer(
      options.trainer, /*has_workers=*/false, "fortunes");
  if (failure.exit_code != ExitCode::kOk) return failure;
  auto texts = fortunes::read_fortunes(options.data);
  if (!texts.ok()) {
    failure = file_error(std::move(texts).status());
    if (failure.exit_code == ExitCode::kMissingData)
      spdlog::info(
          "the data is Debian's package fortunes; --data names another folder");
    return failure;
  }
  spdlog::info("{} texts", texts->size());
  fortunes::TaskOptions task_options = options.task;
  task_options.epochs = options.trainer.epochs;
  auto task = fortunes::make_task(task_options, std::move(texts).value());
  if (!task.ok()) return usage_error(std::move(task).status());
  training::Outcome outcome = training::train(
      task->graph, {.workers = options.workers, .seed = options.task.seed},
      task->trainee, options.trainer);
  if (outcome.failure.exit_code != ExitCode::kOk) return outcome.failure;
  const double bits = double(outcome.test[0]) / std::numbers::ln2;
  if (options.json) {
    print_text(fmt::format(
        "{{\"step\": {}, \"steps\": {}, \"validation_loss\": {}, "
        "\"bits_per_character\": {:.4f}, \"seconds\": {:.3f}}}\n",
        outcome.step, outcome.steps, outcome.test[0], bits, outcome.seconds));
    return {};
  }
  print_text(fmt::format(
      "step: {} of {}\nvalidation loss: {:.4f}\nbits per character: {:.3f}\n"
      "seconds: {:.1f}\nwritten: {}/loss.svg, history.csv, model.ckpt-{}\n",
      outcome.step, outcome.steps, outcome.test[0], bits, outcome.seconds,
      options.trainer.checkpoints.save, outcome.step));
  return {};
}

Failure sample(const Options& options) {
  const auto graph =
      fortunes::make_sampler(options.task, options.count, options.longest);
  if (!graph.ok()) return usage_error(graph.status());
  OwnedSession session;
  Failure failure = open_session(
      *graph, {.workers = options.workers, .seed = options.draw_seed}, session);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const auto restored =
      actors::restore_checkpoint(*session, options.trainer.checkpoints.save);
  if (!restored.ok()) return file_error(restored.status());
  const WatchedRun watched(*session);
  actors::RunOptions run;
  run.cancel = watched.token();
  const auto drawn =
      fortunes::draw_texts(*session, float(options.temperature), run);
  if (!drawn.ok()) return watched.failure_of(drawn.status());
  for (size_t i = 0; i < drawn->size(); ++i)
    print_text((i > 0 ? "%\n" : "") + (*drawn)[i] + "\n");
  return {};
}

// The options that both commands need to make the same variables.
void add_common_options(CLI::App& app, Options& options) {
  const auto size = CLI::Range(int64_t{1}, int64_t{1} << 16);
  app.add_option("--units", options.task.units, "units of the LSTM")
      ->capture_default_str()
      ->check(size);
  app.add_option("--embedding", options.task.embedding,
                 "numbers that stand for a character")
      ->capture_default_str()
      ->check(size);
  add_workers_option(app, options.workers);
}

void add_train_options(CLI::App& app, Options& options) {
  const auto size = CLI::Range(int64_t{1}, int64_t{1} << 16);
  training::add_trainer_options(app, options.trainer);
  add_common_options(app, options);
  app.add_option("--data", options.data, "folder of the texts")
      ->capture_default_str()
      ->type_name("DIR");
  app.add_option("--streams", options.task.streams,
                 "parts of the text that are read side by side")
      ->capture_default_str()
      ->check(size);
  app.add_option("--piece", options.task.piece,
                 "characters in a step, through which gradients go back")
      ->capture_default_str()
      ->check(size);
  training::add_rate_option(app, options.task.learning_rate);
  app.add_option("--seed", options.task.seed,
                 "seed of first weights and of the order of texts")
      ->capture_default_str();
  training::add_json_option(app, options.json);
}

void add_sample_options(CLI::App& app, Options& options) {
  add_common_options(app, options);
  app.add_option("--restore", options.trainer.checkpoints.save,
                 "folder of the training, or a checkpoint")
      ->capture_default_str()
      ->type_name("PATH");
  app.add_option("--count", options.count, "texts, drawn side by side")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  app.add_option("--longest", options.longest,
                 "characters after which a text is cut off")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--temperature", options.temperature,
                 "below 1, likely characters come more often than they should")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 100.0));
  app.add_option("--seed", options.draw_seed,
                 "of what is drawn; left out: others each time");
}

ExitCode run(int argc, char** argv) {
  Options options;
  options.trainer.epochs = 4;
  options.trainer.checkpoints.save = "out/fortunes";
  options.trainer.checkpoints.save_every = "30s";
  CLI::App app(
      "Learns to write from Debian's fortunes, character by character.",
      "fortunes");
  app.set_version_flag("--version", TAGFLOW_VERSION);
  app.require_subcommand(1);
  ExitCode exit_code = ExitCode::kOk;
  CLI::App* train_command = app.add_subcommand(
      "train",
      "Trains, and measures how well the next characters of other texts are "
      "predicted. The same command resumes a training that was ended.");
  add_train_options(*train_command, options);
  train_command->callback([&] { exit_code = report(train(options)); });
  CLI::App* sample_command = app.add_subcommand("sample", "Draws texts.");
  add_sample_options(*sample_command, options);
  sample_command->callback([&] { exit_code = report(sample(options)); });
  return parse_and_run(app, argc, argv, exit_code);
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, run); }
