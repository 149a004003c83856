// Helpers for the command lines of the programs.
#pragma once

#include <initializer_list>
#include <string>

#include "apps/shared/program/exit_code.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tagflow::apps {

// Parses the arguments of main(), calls the callbacks of `app` and of the
// chosen subcommands, and returns `result`, which they set. --help and
// --version print to stdout and are not errors. An invalid command line is a
// usage error; the message on stderr says where to find help. If the first
// argument should be a subcommand and is not, the message suggests the nearest
// one.
ExitCode parse_and_run(CLI::App& app, int argc, char** argv,
                       const ExitCode& result);

// Declares --workers, a number of threads; a number out of range is a usage
// error. `workers` must outlive the parsing.
CLI::Option* add_workers_option(CLI::App& app, int& workers);

// Declares an option that names a file or folder. It rejects "", since a script
// with an unset variable would lose its output.
CLI::Option* add_output_option(CLI::App& app, const std::string& name,
                               std::string& path, const std::string& help,
                               const std::string& type_name = "FILE");

// A file that a command reads or writes; an empty path is none.
struct NamedFile {
  const char* what;  // "--trace"
  const std::string& path;
};
// InvalidArgument if two outputs are one file, or an output is an input: the
// command would overwrite it.
Status check_distinct(std::initializer_list<NamedFile> outputs,
                      std::initializer_list<NamedFile> inputs);

// Appends a paragraph to the footer of the help.
void append_to_footer(CLI::App& app, const std::string& text);

}  // namespace tagflow::apps
