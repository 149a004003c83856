// tagflow cluster trace: what the workers of a master service do.
#pragma once

#include "apps/shared/program/exit_code.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tagflow::apps {

// Adds it to "tagflow cluster".
void add_cluster_trace_command(CLI::App& cluster, ExitCode& exit_code);

}  // namespace tagflow::apps
