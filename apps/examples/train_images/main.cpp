// train_images: trains a network to classify the images of Fashion-MNIST.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "actors/checkpoint/training_loop.h"
#include "actors/session/backend.h"
#include "apps/examples/train_images/task.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/program.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/shared/runs/log.h"
#include "apps/shared/runs/restart_options.h"
#include "apps/shared/runs/tls_options.h"
#include "apps/shared/training/trainer_options.h"

namespace {

using namespace tagflow;        // NOLINT: a main file
using namespace tagflow::apps;  // NOLINT
using train_images::Model;
using train_images::Task;

constexpr std::pair<const char*, train_images::Style> kStyles[] = {
    {"ring", train_images::Style::kRing},
    {"ps", train_images::Style::kServer},
    {"async", train_images::Style::kAsync},
    {"backup", train_images::Style::kBackup}};

struct Options {
  train_images::TaskOptions task;
  training::TrainerOptions trainer;
  std::string data = io::kFashionMnist;
  int64_t pictures = 0;  // 0: all
  int replicas = 0;      // 0: one for each device of the cluster
  std::string style = kStyles[0].first;
  EngineOptions engine;
  RestartOptions restarts;
  bool json = false;
  bool logs_json = false;
};

// The devices of the replicas: the first ones of the cluster, or CPUs of this
// process, which are made for them.
Result<std::vector<std::string>> find_devices(Options& options) {
  std::vector<std::string> devices;
  if (options.engine.backend == nullptr) {
    for (int k = 0; k < options.replicas; ++k)
      devices.push_back(fmt::format("/device:CPU:{}", k));
    options.engine.devices =
        fmt::format("cpu:{}", std::max<size_t>(1, devices.size()));
    return devices;
  }
  const auto all = options.engine.backend->devices();
  if (options.replicas > int(all.size()))
    return invalid_argument(
        "[--replicas] the cluster has {} devices, and {} replicas are to be on "
        "them",
        all.size(), options.replicas);
  const size_t count =
      options.replicas == 0 ? all.size() : size_t(options.replicas);
  for (size_t k = 0; k < count; ++k) devices.push_back(all[k].name.to_string());
  return devices;
}

Result<Task> load_task(const Options& options) {
  TAGFLOW_ASSIGN(io::ImageSet train,
                 train_images::read_pictures(
                     options.data, io::ImagePart::kTrain, options.pictures));
  TAGFLOW_ASSIGN(io::ImageSet test,
                 train_images::read_pictures(options.data, io::ImagePart::kTest,
                                             options.pictures));
  spdlog::info("{} pictures to train with, {} to test with",
               train.images.dim(0), test.images.dim(0));
  train_images::TaskOptions task = options.task;
  task.epochs = options.trainer.epochs;
  return make_task(task, std::move(train), std::move(test));
}

void print_results(const Options& options, const Task& task,
                   const training::Outcome& outcome) {
  const std::string tests =
      training::format_tests(outcome, task.trainee, options.json);
  const std::string_view model =
      train_images::defaults_of(options.task.model).name;
  print_text(
      options.json
          ? fmt::format("{{\"model\": \"{}\", \"step\": {}, \"steps\": {}{}, "
                        "\"seconds\": {:.3f}, \"images_per_second\": "
                        "{:.1f}}}\n",
                        model, outcome.step, outcome.steps, tests,
                        outcome.seconds, outcome.examples_per_second)
          : fmt::format("step: {} of {}\n{}seconds: {:.1f}\nimages/s: {:.0f}\n"
                        "written: {}/loss.svg, history.csv, model.ckpt-{}\n",
                        outcome.step, outcome.steps, tests, outcome.seconds,
                        outcome.examples_per_second,
                        options.trainer.checkpoints.save, outcome.step));
}

training::Outcome train_once(const Options& options, const Task& task) {
  actors::SessionOptions session_options;
  session_options.backend = options.engine.backend;
  session_options.workers = options.engine.workers;
  session_options.devices = options.engine.devices;
  session_options.seed = options.task.seed;
  return training::train(task.graph, session_options, task.trainee,
                         options.trainer);
}

// Connects to the workers that have the replicas, which know nothing of the
// training that has ended.
Failure connect_again(Options& options) {
  options.engine.backend = nullptr;  // its workers obey one master at a time
  Failure failure = connect_cluster(options.engine);
  const std::vector<std::string>& lost = options.engine.reconnection->lost;
  if (failure.exit_code == ExitCode::kOk && !lost.empty())
    return {ExitCode::kPeerLost,
            error(Code::kFailedPrecondition,
                  "[--restarts] there is no training without {}",
                  fmt::join(lost, ", "))};
  return failure;
}

// As train_once(), but goes on after the loss of workers, as often as the
// options say.
training::Outcome train_with_restarts(Options& options, const Task& task) {
  training::Outcome outcome;
  (void)actors::run_with_restarts(options.restarts.count, [&](int number) {
    if (number > 0) {
      spdlog::warn("[--restarts] {}; restart {} of {}",
                   outcome.failure.status.message(), number,
                   options.restarts.count);
      options.trainer.is_fresh = false;
      outcome.failure = connect_again(options);
      if (outcome.failure.exit_code != ExitCode::kOk)
        return outcome.failure.status;
    }
    outcome = train_once(options, task);
    return outcome.failure.status;
  });
  return outcome;
}

Failure train_model(Options& options) {
  if (options.logs_json)
    if (Status logs = log_as_json(""); !logs.ok())
      return run_time_error(std::move(logs));
  Failure failure = training::prepare_trainer(
      options.trainer, /*has_workers=*/!options.engine.cluster.empty(),
      "train_images");
  if (failure.exit_code != ExitCode::kOk) return failure;
  for (const auto& [name, style] : kStyles)
    if (options.style == name) options.task.style = style;
  // A run of a replica that is ended leaves the state as any other moment does.
  options.engine.tolerates_torn_state =
      options.task.style == train_images::Style::kAsync ||
      options.task.style == train_images::Style::kBackup;
  options.engine.reconnection = reconnection_of(options.restarts);
  Failure connection = connect_cluster(options.engine);
  if (connection.exit_code != ExitCode::kOk) return connection;
  auto devices = find_devices(options);
  if (!devices.ok()) return usage_error(std::move(devices).status());
  options.task.devices = *std::move(devices);
  Result<Task> task = load_task(options);
  if (!task.ok()) {
    failure = file_error(std::move(task).status());
    if (failure.exit_code == ExitCode::kMissingData)
      spdlog::info(
          "the data is Debian's package dataset-fashion-mnist; "
          "--data names another folder");
    return failure;
  }
  training::Outcome outcome = train_with_restarts(options, *task);
  if (outcome.failure.exit_code == ExitCode::kOk)
    print_results(options, *task, outcome);
  return std::move(outcome.failure);
}

void add_replica_options(CLI::App& command, Options& options) {
  const char* const group = "Over several devices";
  std::vector<std::string> names;
  for (const auto& [name, unused] : kStyles) names.emplace_back(name);
  CLI::Option* const cluster =
      command
          .add_option("--cluster", options.engine.cluster,
                      "train on the workers of this cluster file, or of the "
                      "cluster that a worker at this address has joined, or of "
                      "the master service at tagflow://HOST:PORT")
          ->type_name("FILE|HOST:PORT")
          ->group(group);
  command
      .add_option("--secret-file", options.engine.secret_file,
                  "the secret of the cluster; default: the file that the "
                  "cluster file names")
      ->type_name("FILE")
      ->group(group);
  add_tls_options(command, options.engine.tls, cluster, group);
  command
      .add_option("--replicas", options.replicas,
                  "so many devices each train with a part of every batch; "
                  "default: all of the cluster, else one")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  command
      .add_option("--style", options.style,
                  "ring: each replica has the variables; ps: the first device "
                  "has them; async: the same, and replicas do not wait for "
                  "each other; backup: steps do not wait for the last replicas")
      ->capture_default_str()
      ->check(CLI::IsMember(names))
      ->group(group);
  command
      .add_option("--backups", options.task.backups,
                  "replicas that a step does not wait for, with --style backup")
      ->capture_default_str()
      ->check(CLI::Range(0, 1023))
      ->group(group);
  add_restart_options(command, options.restarts)->needs(cluster)->group(group);
  command.get_option("--restart-wait")->group(group);
}

// The subcommand of a model, with its defaults.
void add_model(CLI::App& app, Model model, Options& options,
               ExitCode& exit_code) {
  const auto& defaults = train_images::defaults_of(model);
  options.task.model = model;
  options.task.batch = defaults.batch;
  options.task.learning_rate = defaults.learning_rate;
  options.task.is_augmented = defaults.is_augmented;
  options.trainer.epochs = defaults.epochs;
  options.trainer.checkpoints.save = fmt::format("out/{}", defaults.name);
  options.trainer.checkpoints.save_every = "30s";

  CLI::App* command = app.add_subcommand(std::string(defaults.name),
                                         std::string(defaults.description));
  training::add_trainer_options(*command, options.trainer);
  command->add_option("--data", options.data, "folder of the IDX files")
      ->capture_default_str()
      ->type_name("DIR");
  command
      ->add_option("--pictures", options.pictures,
                   "use the first N, to train and to test; 0: all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  command->add_option("--batch", options.task.batch, "pictures in a step")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  training::add_rate_option(*command, options.task.learning_rate);
  command
      ->add_flag("--augment,!--no-augment", options.task.is_augmented,
                 "mirror pictures, and move them by up to two pixels")
      ->default_str(defaults.is_augmented ? "true" : "false");
  command
      ->add_option("--seed", options.task.seed,
                   "seed of first weights, batches and what is dropped")
      ->capture_default_str();
  add_workers_option(*command, options.engine.workers);
  add_replica_options(*command, options);
  training::add_json_option(*command, options.json);
  add_log_format_option(*command, options.logs_json);
  command->callback(
      [&options, &exit_code] { exit_code = report(train_model(options)); });
}

ExitCode run(int argc, char** argv) {
  CLI::App app(
      "Trains a network to tell the pictures of Fashion-MNIST apart. The same "
      "command resumes a training that was ended.",
      "train_images");
  app.set_version_flag("--version", TAGFLOW_VERSION);
  app.require_subcommand(1);
  std::array<Options, train_images::kModels.size()> options;
  ExitCode exit_code = ExitCode::kOk;
  for (const Model model : train_images::kModels)
    add_model(app, model, options[size_t(model)], exit_code);
  return parse_and_run(app, argc, argv, exit_code);
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, run); }
