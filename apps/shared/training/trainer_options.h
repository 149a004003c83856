// The options that trainings have in common. The functions declare them; what
// they are read into must outlive the parsing, and holds the defaults. Values
// out of range are usage errors then.
#pragma once

#include <string>

#include "apps/shared/training/trainer.h"

namespace CLI {
class App;
}

namespace tagflow::training {

// --epochs, --report-every, --stop-at, --fresh, --summaries, --inspect, and
// those of add_saving_options().
void add_trainer_options(CLI::App& app, TrainerOptions& options);
// Checks them, and opens the live page, if one is asked for; `title` is that of
// LivePage::start(). A usage error, or one of the page.
apps::Failure prepare_trainer(TrainerOptions& options, bool has_workers,
                              const std::string& title);

// --rate, the learning rate of the first step.
void add_rate_option(CLI::App& app, double& learning_rate);

// --json, for the result alone.
void add_json_option(CLI::App& app, bool& is_json);

}  // namespace tagflow::training
