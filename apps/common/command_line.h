// What the programs' command lines have in common.
#pragma once

#include <span>
#include <string>

#include "apps/common/exit_code.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace tagflow::apps {

// --help and --version go to stdout and are no errors. Everything else is
// said on stderr, with where to find help, and is a usage error. Where the
// first of `arguments`, those of main(), should be a subcommand and is not,
// the nearest one is named.
ExitCode report_parse_error(const CLI::App& app, const CLI::ParseError& error,
                            std::span<char* const> arguments);

// Declares an option that names a file or folder, which "" does not:
// a script whose variable is not set would lose what it asks for.
CLI::Option* add_output_option(CLI::App& app, const std::string& name,
                               std::string& path, const std::string& help,
                               const std::string& type_name = "FILE");

// Adds a paragraph to what the help ends with.
void append_to_footer(CLI::App& app, const std::string& text);

}  // namespace tagflow::apps
