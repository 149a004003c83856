#include <CLI/CLI.hpp>

#include "apps/training/trainer.h"

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
  apps::add_saving_options(app, options.training);
}

}  // namespace tagflow::training
