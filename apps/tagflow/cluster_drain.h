// tagflow cluster drain: workers leave their cluster.
#pragma once

#include "apps/shared/program/exit_code.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

// Declares it as a subcommand of `tagflow cluster`; see commands.h.
void add_cluster_drain_command(CLI::App& cluster, ExitCode& exit_code);

}  // namespace tagflow::apps
