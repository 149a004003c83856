// The `tagflow` command. Data goes to stdout, logs and progress to stderr;
// exit codes are those of apps/shared/program/exit_code.h.
#include <CLI/CLI.hpp>

#include "apps/shared/program/command_line.h"
#include "apps/shared/program/program.h"
#include "apps/tagflow/commands.h"
#include "autodiff/symbolic_gradient.h"

namespace {

using namespace tagflow::apps;

ExitCode run(int argc, char** argv) {
  tagflow::autodiff::enable_symbolic_gradients();
  CLI::App app("Runs dataflow graphs with loops and conditionals in them.",
               "tagflow");
  app.set_version_flag("--version", TAGFLOW_VERSION);
  app.require_subcommand(1);
  ExitCode exit_code = ExitCode::kOk;
  add_run_command(app, exit_code);
  add_step_command(app, exit_code);
  add_graph_command(app, exit_code);
  add_place_command(app, exit_code);
  add_partition_command(app, exit_code);
  add_gradients_command(app, exit_code);
  add_conform_command(app, exit_code);
  add_bench_command(app, exit_code);
  add_checkpoint_command(app, exit_code);
  add_vars_command(app, exit_code);
  add_ops_command(app, exit_code);
  add_worker_command(app, exit_code);
  add_master_command(app, exit_code);
  add_serve_command(app, exit_code);
  add_cluster_command(app, exit_code);
  add_completion_command(app, exit_code);
  add_man_command(app, exit_code);
  return parse_and_run(app, argc, argv, exit_code);
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, run); }
