// What the programs' command lines have in common.
#pragma once

#include <string>

#include "apps/common/exit_code.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tagflow::apps {

// Parses the arguments of main(), which calls the callbacks of `app` and of the
// subcommands that were chosen; returns `result` as they have left it. --help
// and --version go to stdout and are no errors. What is wrong with the command
// line is said on stderr, with where to find help, and is a usage error. Where
// the first argument should be a subcommand and is not, the nearest one is
// named.
ExitCode parse_and_run(CLI::App& app, int argc, char** argv,
                       const ExitCode& result);

// Declares --workers, a number of threads; one that is out of range is a usage
// error. `workers` must outlive the parsing.
CLI::Option* add_workers_option(CLI::App& app, int& workers);

// Declares an option that names a file or folder, which "" does not:
// a script whose variable is not set would lose what it asks for.
CLI::Option* add_output_option(CLI::App& app, const std::string& name,
                               std::string& path, const std::string& help,
                               const std::string& type_name = "FILE");

// Adds a paragraph to what the help ends with.
void append_to_footer(CLI::App& app, const std::string& text);

}  // namespace tagflow::apps
