// Op libraries from the command line.
#pragma once

#include <string>
#include <vector>

#include "apps/shared/program/exit_code.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

// Declares --op-library; `files` must outlive the parsing.
void add_op_library_option(CLI::App& app, std::vector<std::string>& files);

// Loads them. Call this before a graph is read or a device is named, which may
// need them. Returns the first error of graph::load_op_library().
Failure load_op_libraries(const std::vector<std::string>& files);

}  // namespace tagflow::apps
