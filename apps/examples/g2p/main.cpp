// g2p: trains an encoder-decoder to predict the pronunciation of words.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

#include "actors/checkpoint/restore.h"
#include "apps/examples/g2p/task.h"
#include "apps/shared/io/file.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/owned_session.h"
#include "apps/shared/program/program.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/watched_run.h"
#include "apps/shared/training/trainer_options.h"

namespace {

using namespace tagflow;        // NOLINT: a main file
using namespace tagflow::apps;  // NOLINT
using g2p::ErrorCount;
using g2p::Lexicon;
using g2p::Task;

struct Options {
  g2p::TaskOptions task;
  training::TrainerOptions trainer;
  std::string lexicon = "/usr/share/festival/dicts/cmu/cmudict-0.4.out";
  std::vector<std::string> words;
  int workers = 0;
  bool json = false;
};

Result<std::shared_ptr<const Lexicon>> read_lexicon(const std::string& path) {
  TAGFLOW_ASSIGN(const std::string text, io::read_file(path));
  Result<Lexicon> lexicon = g2p::parse_lexicon(text);
  if (!lexicon.ok())
    return std::move(lexicon).status().with_prefix(fmt::format("{}: ", path));
  spdlog::info("{} words of {} phonemes; {} entries have other letters",
               lexicon->words.size(), lexicon->phonemes.size() - 1,
               lexicon->skipped);
  return std::make_shared<const Lexicon>(std::move(lexicon).value());
}

// The lexicon, the graph, and a session that has it.
struct Program {
  std::shared_ptr<const Lexicon> lexicon;
  Task task;
  OwnedSession session;
};

Failure set_up(const Options& options, Program& program) {
  auto lexicon = read_lexicon(options.lexicon);
  if (!lexicon.ok()) {
    Failure failure = file_error(std::move(lexicon).status());
    if (failure.exit_code == ExitCode::kMissingData)
      spdlog::info(
          "the data is Debian's package festlex-cmu; --lexicon names another "
          "file");
    return failure;
  }
  program.lexicon = std::move(lexicon).value();
  g2p::TaskOptions task_options = options.task;
  task_options.epochs = options.trainer.epochs;
  auto task = g2p::make_task(task_options, program.lexicon);
  if (!task.ok()) return usage_error(std::move(task).status());
  program.task = std::move(task).value();
  return open_session(program.task.graph,
                      {.workers = options.workers, .seed = options.task.seed},
                      program.session);
}

std::string format_errors(const char* search, const ErrorCount& errors,
                          bool json) {
  const double phonemes = errors.phoneme_rate(), words = errors.word_rate();
  return json ? fmt::format(
                    ", \"{0}_phoneme_error_rate\": {1:.4f}, "
                    "\"{0}_word_error_rate\": {2:.4f}",
                    search, phonemes, words)
              : fmt::format(
                    "{}: {:.2f} % of phonemes and {:.2f} % of words "
                    "are wrong\n",
                    search, 100 * phonemes, 100 * words);
}

Failure train(Options& options) {
  Failure failure =
      training::prepare_trainer(options.trainer, /*has_workers=*/false, "g2p");
  if (failure.exit_code != ExitCode::kOk) return failure;
  Program program;
  failure = set_up(options, program);
  if (failure.exit_code != ExitCode::kOk) return failure;
  training::Outcome outcome =
      training::train(program.session, program.task.trainee, options.trainer);
  if (outcome.failure.exit_code != ExitCode::kOk) return outcome.failure;

  const WatchedRun watched(*program.session);
  actors::RunOptions run;
  run.cancel = watched.token();
  const auto count = [&](const g2p::Search& search) {
    return g2p::count_errors(*program.session, search, *program.lexicon,
                             g2p::Part::kTest, run);
  };
  const Result<ErrorCount> greedy = count(program.task.greedy);
  if (!greedy.ok()) return watched.failure_of(greedy.status());
  const Result<ErrorCount> beam = count(program.task.beam);
  if (!beam.ok()) return watched.failure_of(beam.status());
  if (options.json) {
    print_text(fmt::format(
        "{{\"step\": {}, \"steps\": {}, \"validation_loss\": {}, \"words\": "
        "{}{}{}, \"seconds\": {:.3f}}}\n",
        outcome.step, outcome.steps, outcome.test[0], greedy->words,
        format_errors("greedy", *greedy, true),
        format_errors("beam", *beam, true), outcome.seconds));
    return {};
  }
  print_text(fmt::format(
      "step: {} of {}\nvalidation loss: {:.4f}\ntest words: {}\n{}{}"
      "seconds: {:.1f}\nwritten: {}/loss.svg, history.csv, model.ckpt-{}\n",
      outcome.step, outcome.steps, outcome.test[0], greedy->words,
      format_errors("greedy", *greedy, false),
      format_errors(fmt::format("beam of {}", options.task.width).c_str(),
                    *beam, false),
      outcome.seconds, options.trainer.checkpoints.save, outcome.step));
  return {};
}

Failure say(const Options& options) {
  Program program;
  Failure failure = set_up(options, program);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const auto restored = actors::restore_checkpoint(
      *program.session, options.trainer.checkpoints.save);
  if (!restored.ok()) return file_error(restored.status());
  const WatchedRun watched(*program.session);
  actors::RunOptions run;
  run.cancel = watched.token();
  const auto said =
      g2p::pronounce(*program.session, program.task.beam, options.words, run);
  if (!said.ok()) return watched.failure_of(said.status());
  for (size_t i = 0; i < said->size(); ++i)
    print_text(fmt::format("{}: {} ({:.3f})\n", options.words[i],
                           g2p::text_of(*program.lexicon, (*said)[i].phonemes),
                           std::exp(double((*said)[i].log_probability))));
  return {};
}

// The options that both commands need to make the same graph.
void add_common_options(CLI::App& app, Options& options) {
  const auto size = CLI::Range(int64_t{1}, int64_t{1} << 16);
  app.add_option("--lexicon", options.lexicon, "a compiled lexicon of Festival")
      ->capture_default_str()
      ->type_name("FILE");
  app.add_option("--units", options.task.units, "units of each LSTM")
      ->capture_default_str()
      ->check(size);
  app.add_option("--embedding", options.task.embedding,
                 "numbers that stand for a letter or phoneme")
      ->capture_default_str()
      ->check(size);
  app.add_option("--width", options.task.width, "hypotheses of the beam")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  add_workers_option(app, options.workers);
}

ExitCode run(int argc, char** argv) {
  Options options;
  options.trainer.epochs = 6;
  options.trainer.checkpoints.save = "out/g2p";
  options.trainer.checkpoints.save_every = "30s";
  CLI::App app("Learns from a lexicon how words are pronounced.", "g2p");
  app.set_version_flag("--version", TAGFLOW_VERSION);
  app.require_subcommand(1);
  ExitCode exit_code = ExitCode::kOk;

  CLI::App* train_command = app.add_subcommand(
      "train",
      "Trains, and counts errors in words that it has not seen. The same "
      "command resumes a training that was ended.");
  training::add_trainer_options(*train_command, options.trainer);
  add_common_options(*train_command, options);
  train_command->add_option("--batch", options.task.batch, "words in a step")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  training::add_rate_option(*train_command, options.task.learning_rate);
  train_command
      ->add_option("--seed", options.task.seed,
                   "seed of first weights and batches")
      ->capture_default_str();
  training::add_json_option(*train_command, options.json);
  train_command->callback([&] { exit_code = report(train(options)); });

  CLI::App* say_command =
      app.add_subcommand("say", "Says words, each with its probability.");
  say_command->add_option("words", options.words, "of letters a to z")
      ->required();
  say_command
      ->add_option("--restore", options.trainer.checkpoints.save,
                   "folder of the training, or a checkpoint")
      ->capture_default_str()
      ->type_name("PATH");
  add_common_options(*say_command, options);
  say_command->callback([&] { exit_code = report(say(options)); });
  return parse_and_run(app, argc, argv, exit_code);
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, run); }
