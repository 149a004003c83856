#include "apps/shared/program/command_line.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "apps/shared/program/terminal.h"
#include "graph/op_registry.h"

namespace tagflow::apps {
namespace {

// The full name of the chosen command: "tagflow checkpoint cat".
std::string path_of(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app.get_name()
                        : app.get_name() + " " + path_of(*chosen.front());
}

// The error of the first argument, if that should be a subcommand.
std::string describe_unknown(const CLI::App& app,
                             std::span<char* const> arguments) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
  }
  if (names.empty() || arguments.size() < 2 || arguments[1][0] == '-' ||
      !app.get_subcommands().empty()) {
    return "";
  }
  const std::string word = arguments[1];
  const std::string nearest = graph::nearest_name(word, names);
  return fmt::format(
      "there is no subcommand \"{}\"{}", word,
      nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest));
}

// In CLI11 --help and --version are errors, too.
ExitCode report_parse_error(const CLI::App& app, const CLI::ParseError& error,
                            std::span<char* const> arguments) {
  if (error.get_exit_code() == int(CLI::ExitCodes::Success)) {
    std::ostringstream help;  // or the version
    app.exit(error, help);
    print_text(help.str());
    return ExitCode::kOk;
  }
  const std::string unknown = describe_unknown(app, arguments);
  spdlog::error("{}", unknown.empty() ? error.what() : unknown);
  spdlog::info("see {} --help", path_of(app));
  return ExitCode::kUsage;
}

}  // namespace

ExitCode parse_and_run(CLI::App& app, int argc, char** argv,
                       const ExitCode& result) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(app, error, {argv, size_t(argc)});
  }
  return result;
}

CLI::Option* add_workers_option(CLI::App& app, int& workers) {
  return app
      .add_option("--workers", workers, "worker threads; 0: one per core")
      ->check(CLI::Range(0, 1024));
}

CLI::Option* add_output_option(CLI::App& app, const std::string& name,
                               std::string& path, const std::string& help,
                               const std::string& type_name) {
  const CLI::Validator is_named(
      [](const std::string& text) {
        return text.empty() ? std::string("the path is empty") : std::string();
      },
      "");
  return app.add_option(name, path, help)
      ->check(is_named)
      ->type_name(type_name);
}

namespace {

bool is_one_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  if (a.empty() || b.empty()) return false;
  std::error_code code;
  const fs::file_status status = fs::status(a, code);
  // What is written to a terminal or a pipe follows what was.
  if (fs::exists(status) && !fs::is_regular_file(status)) return false;
  if (fs::equivalent(a, b, code) && !code) return true;
  const fs::path whole = fs::weakly_canonical(a, code);
  return !code && whole == fs::weakly_canonical(b, code) && !code;
}

}  // namespace

Status check_distinct(std::initializer_list<NamedFile> outputs,
                      std::initializer_list<NamedFile> inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    const auto complain = [&](const NamedFile& other) {
      return invalid_argument("[{}] \"{}\" is the file of {} as well",
                              output->what, output->path, other.what);
    };
    for (auto other = outputs.begin(); other != output; ++other)
      if (is_one_file(other->path, output->path)) return complain(*other);
    for (const NamedFile& input : inputs)
      if (is_one_file(input.path, output->path)) return complain(input);
  }
  return {};
}

void append_to_footer(CLI::App& app, const std::string& text) {
  const std::string before = app.get_footer();
  app.footer(before.empty() ? text : before + "\n\n" + text);
}

}  // namespace tagflow::apps
