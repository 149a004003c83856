// tagflow completion, tagflow man: what a shell and a manual take from the
// command.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "apps/shared/io/file.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/manual.h"
#include "graph/op_registry.h"
#include "graph/passes/passes.h"

namespace tagflow::apps {
namespace {

// Writes the page of each command to the folder, as man finds them there.
Status write_pages(const CLI::App& app, const std::string& whole_name,
                   const std::filesystem::path& folder) {
  std::string file = whole_name + ".1";
  std::ranges::replace(file, ' ', '-');
  TAGFLOW_RETURN_IF_ERROR(io::write_file(
      folder / file, manual_page(app, whole_name, TAGFLOW_VERSION)));
  for (const CLI::App* sub : app.get_subcommands(nullptr))
    TAGFLOW_RETURN_IF_ERROR(
        write_pages(*sub, whole_name + " " + sub->get_name(), folder));
  return {};
}

KnownNames known_names() {
  KnownNames names;
  names["OP"] = graph::OpRegistry::global().names();
  std::vector<std::string>& passes = names["PASS"];
  passes = {"all", "none"};
  for (const graph::PassItem& pass : graph::passes()) {
    passes.emplace_back(pass.name);
    passes.push_back(fmt::format("-{}", pass.name));
  }
  names["WORKLOAD"] = names_of_workloads();
  return names;
}

struct ManOptions {
  std::vector<std::string> command;
  std::string out;
};

Failure show_page(const CLI::App& root, const ManOptions& options) {
  if (!options.out.empty()) {
    Status status = io::make_folder(options.out);
    if (status.ok()) status = write_pages(root, root.get_name(), options.out);
    return status.ok() ? Failure() : run_time_error(std::move(status));
  }
  const CLI::App* app = &root;
  std::string whole_name = root.get_name();
  for (const std::string& word : options.command) {
    const std::vector<const CLI::App*> found = app->get_subcommands(
        [&](const CLI::App* sub) { return sub->check_name(word); });
    if (found.empty())
      return usage_error(invalid_argument("[man] \"{}\" has no command \"{}\"",
                                          whole_name, word));
    app = found.front();
    whole_name += " " + word;
  }
  print_text(manual_page(*app, whole_name, TAGFLOW_VERSION));
  return {};
}

}  // namespace

void add_completion_command(CLI::App& app, ExitCode& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand(
      "completion",
      "print a script that completes commands and options in a shell: "
      "source <(tagflow completion bash)");
  sub->add_option("shell", *shell, "the shell")
      ->required()
      ->type_name("bash|zsh")
      ->check(CLI::IsMember({"bash", "zsh"}));
  sub->callback([&app, shell, &exit_code] {
    const KnownNames names = known_names();
    print_text(*shell == "zsh" ? zsh_completion(app, names)
                               : bash_completion(app, names));
    exit_code = ExitCode::kOk;
  });
}

void add_man_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<ManOptions>();
  CLI::App* sub = app.add_subcommand(
      "man", "print a page for man: tagflow man run | man -l -");
  sub->add_option("command", options->command,
                  "the command, such as run, or cluster start; default: "
                  "tagflow itself")
      ->type_name("COMMAND...");
  add_output_option(*sub, "--out", options->out,
                    "write the pages of all commands to this folder instead",
                    "DIR");
  sub->callback([&app, options, &exit_code] {
    exit_code = report(show_page(app, *options));
  });
}

}  // namespace tagflow::apps
