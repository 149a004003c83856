// The subcommands of `tagflow`, one file each.
#pragma once

#include <string>
#include <vector>

#include "apps/shared/program/exit_code.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

// Each declares its subcommand on `app`. If the command line selects it,
// parsing runs it and sets `exit_code`, which must outlive the parsing.
void add_run_command(CLI::App& app, ExitCode& exit_code);
void add_step_command(CLI::App& app, ExitCode& exit_code);
void add_graph_command(CLI::App& app, ExitCode& exit_code);
void add_place_command(CLI::App& app, ExitCode& exit_code);
void add_partition_command(CLI::App& app, ExitCode& exit_code);
void add_gradients_command(CLI::App& app, ExitCode& exit_code);
void add_conform_command(CLI::App& app, ExitCode& exit_code);
void add_bench_command(CLI::App& app, ExitCode& exit_code);
void add_checkpoint_command(CLI::App& app, ExitCode& exit_code);
void add_vars_command(CLI::App& app, ExitCode& exit_code);
void add_ops_command(CLI::App& app, ExitCode& exit_code);
void add_worker_command(CLI::App& app, ExitCode& exit_code);
void add_master_command(CLI::App& app, ExitCode& exit_code);
void add_serve_command(CLI::App& app, ExitCode& exit_code);
void add_cluster_command(CLI::App& app, ExitCode& exit_code);
void add_completion_command(CLI::App& app, ExitCode& exit_code);
void add_man_command(CLI::App& app, ExitCode& exit_code);

// What `tagflow bench` takes.
std::vector<std::string> names_of_workloads();

}  // namespace tagflow::apps
