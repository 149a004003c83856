#include "apps/shared/training/trainer_options.h"

#include <CLI/CLI.hpp>

#include "apps/shared/live/page_of_session.h"
#include "apps/shared/program/command_line.h"

namespace tagflow::training {

void add_trainer_options(CLI::App& app, TrainerOptions& options) {
  constexpr int64_t kMost = int64_t{1} << 30;
  app.add_option("--epochs", options.epochs,
                 "how often to go through the training set, with those epochs "
                 "that are done")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, kMost));
  app.add_option("--report-every", options.report_every,
                 "steps between lines of progress")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, kMost));
  app.add_option("--stop-at", options.stop_at,
                 "end after this step, which is saved; the same command "
                 "without it goes on")
      ->type_name("STEP")
      ->check(CLI::Range(int64_t{1}, kMost));
  app.add_flag("--fresh", options.is_fresh,
               "begin anew: removes checkpoints and history from the folder "
               "of --save");
  apps::add_output_option(app, "--summaries", options.summaries,
                          "write the metrics, the graph, and what else the "
                          "model shows of itself to event files for "
                          "TensorBoard",
                          "DIR");
  apps::add_saving_options(app, options.checkpoints);
  apps::add_inspect_option(app, options.inspect);
}

apps::Failure prepare_trainer(TrainerOptions& options, bool has_workers,
                              const std::string& title) {
  Status usage = apps::StepCheckpoints::check(options.checkpoints,
                                              /*has_steps=*/true, has_workers);
  if (!usage.ok()) return apps::usage_error(std::move(usage));
  auto page = apps::open_page(options.inspect, title);
  if (!page.ok()) return apps::run_time_error(std::move(page).status());
  options.page = std::move(*page);
  return {};
}

void add_rate_option(CLI::App& app, double& learning_rate) {
  app.add_option("--rate", learning_rate,
                 "learning rate at first; it falls to 0 as half a cosine")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
}

void add_json_option(CLI::App& app, bool& is_json) {
  app.add_flag("--json", is_json, "print the result as one JSON object");
}

}  // namespace tagflow::training
