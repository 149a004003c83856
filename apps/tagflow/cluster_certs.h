// tagflow cluster certs: an authority, and certificates of a cluster.
#pragma once

#include "apps/shared/program/exit_code.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

// Declares it as a subcommand of `tagflow cluster`; see commands.h.
void add_cluster_certs_command(CLI::App& cluster, ExitCode& exit_code);

}  // namespace tagflow::apps
