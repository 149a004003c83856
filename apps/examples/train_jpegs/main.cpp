// train_jpegs: trains a network to classify JPEG pictures in TFRecord files.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "apps/examples/train_jpegs/task.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/program.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/training/trainer_options.h"

namespace {

using namespace tagflow;        // NOLINT: a main file
using namespace tagflow::apps;  // NOLINT

struct Options {
  std::string data;
  int64_t drawn = 0;   // pictures of each shape; 0: none
  std::string source;  // a folder of folders of JPEG files; or empty
  train_jpegs::TaskOptions task;
  training::TrainerOptions trainer;
  int workers = 0;
  bool json = false;
};

// Writes the data set that the options describe, unless it is there.
Status write_data(const Options& options) {
  TAGFLOW_ASSIGN(const bool has_data, train_jpegs::has_data(options.data));
  if (has_data) {
    if (options.drawn > 0 || !options.source.empty())
      spdlog::info("\"{}\" has pictures already, which are used", options.data);
    return {};
  }
  if (options.drawn > 0) {
    spdlog::info("draws {} pictures of each shape into \"{}\"", options.drawn,
                 options.data);
    return train_jpegs::write_drawings(options.data, options.drawn,
                                       options.task.seed);
  }
  if (options.source.empty())
    return error(Code::kNotFound,
                 "[data] there are no pictures in \"{}\": --draw N draws some, "
                 "and --from DIR takes those of a folder",
                 options.data);
  spdlog::info("writes the pictures of \"{}\" into \"{}\"", options.source,
               options.data);
  return train_jpegs::write_folders(options.data, options.source,
                                    options.task.seed);
}

Result<train_jpegs::Task> load_task(const Options& options) {
  TAGFLOW_RETURN_IF_ERROR(write_data(options));
  TAGFLOW_ASSIGN(train_jpegs::DataSet data,
                 train_jpegs::read_data(options.data));
  spdlog::info("{} pictures of {} classes to train with, {} to test with",
               data.train_records, data.labels.size(),
               data.test_records.size());
  train_jpegs::TaskOptions task = options.task;
  task.epochs = options.trainer.epochs;
  return make_task(task, std::move(data));
}

void print_results(const Options& options, const train_jpegs::Task& task,
                   const training::Outcome& outcome) {
  const std::string tests =
      training::format_tests(outcome, task.trainee, options.json);
  print_text(options.json
                 ? fmt::format("{{\"step\": {}, \"steps\": {}{}, \"seconds\": "
                               "{:.3f}, \"pictures_per_second\": {:.1f}}}\n",
                               outcome.step, outcome.steps, tests,
                               outcome.seconds, outcome.examples_per_second)
                 : fmt::format("step: {} of {}\n{}seconds: {:.1f}\n"
                               "pictures/s: {:.0f}\n",
                               outcome.step, outcome.steps, tests,
                               outcome.seconds, outcome.examples_per_second));
}

Failure train(Options& options) {
  Failure failure = training::prepare_trainer(
      options.trainer, /*has_workers=*/false, "train_jpegs");
  if (failure.exit_code != ExitCode::kOk) return failure;
  const Result<train_jpegs::Task> task = load_task(options);
  if (!task.ok()) return file_error(task.status());
  training::Outcome outcome = training::train(
      task->graph, {.workers = options.workers, .seed = options.task.seed},
      task->trainee, options.trainer);
  if (outcome.failure.exit_code == ExitCode::kOk)
    print_results(options, *task, outcome);
  return std::move(outcome.failure);
}

ExitCode run(int argc, char** argv) {
  CLI::App app(
      "Trains a network to classify JPEG pictures in TFRecord files. The same "
      "command resumes a training that was ended, at the next picture.",
      "train_jpegs");
  app.set_version_flag("--version", TAGFLOW_VERSION);
  Options options;
  options.trainer.epochs = 8;
  options.trainer.report_every = 50;
  options.trainer.checkpoints.save = "out/jpegs";
  options.trainer.checkpoints.save_every = "30s";
  add_output_option(app, "DATA", options.data,
                    "the folder of train-*.tfrecord, test-*.tfrecord and "
                    "labels.txt")
      ->required();
  CLI::Option* const draw =
      app.add_option("--draw", options.drawn,
                     "if DATA has no pictures: draw so many of each of six "
                     "shapes")
          ->type_name("N")
          ->check(CLI::Range(int64_t{10}, int64_t{1} << 20));
  app.add_option("--from", options.source,
                 "if DATA has no pictures: take the JPEG files of the folders "
                 "in this one, each of which is a class")
      ->type_name("DIR")
      ->excludes(draw);
  training::add_trainer_options(app, options.trainer);
  app.add_option("--batch", options.task.batch, "pictures in a step")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  app.add_option("--side", options.task.side,
                 "height and width to which pictures are scaled")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{8}, int64_t{1024}));
  app.add_option("--threads", options.task.threads,
                 "how many read and decode at once")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{64}));
  training::add_rate_option(app, options.task.learning_rate);
  app.add_option("--seed", options.task.seed,
                 "seed of drawings, first weights, and the order of pictures")
      ->capture_default_str();
  add_workers_option(app, options.workers);
  training::add_json_option(app, options.json);
  ExitCode exit_code = ExitCode::kOk;
  app.callback([&] { exit_code = report(train(options)); });
  return parse_and_run(app, argc, argv, exit_code);
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, run); }
