// tagflow conform: recorded cases, each run in a session of its own.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/common/counted.h"
#include "apps/common/engine_options.h"
#include "apps/common/terminal.h"
#include "apps/conform/judge.h"
#include "apps/tagflow/commands.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

struct ConformOptions {
  std::vector<std::string> folders;
  bool json = false;
  EngineOptions engine;
};

struct Tally {
  int passed = 0, failed = 0, skipped = 0;
  std::map<std::string, int> missing;  // op -> cases that need it
  nlohmann::json cases = nlohmann::json::array();

  void add(const Verdict& verdict) {
    const char* outcome = "passed";
    switch (verdict.outcome) {
      case Outcome::kPassed:
        ++passed;
        break;
      case Outcome::kFailed:
        ++failed;
        outcome = "failed";
        break;
      case Outcome::kSkipped:
        ++skipped;
        outcome = "skipped";
        break;
    }
    for (const std::string& op : verdict.missing) ++missing[op];
    cases.push_back(
        {{"name", verdict.name}, {"outcome", outcome}, {"what", verdict.what}});
  }

  // The missing ops, the most wanted first.
  std::vector<std::pair<std::string, int>> by_frequency() const {
    std::vector<std::pair<std::string, int>> ops(missing.begin(),
                                                 missing.end());
    std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) {
      return a.second > b.second;
    });
    return ops;
  }
};

void print_json(const Tally& tally) {
  nlohmann::json missing = nlohmann::json::array();
  for (const auto& [op, count] : tally.by_frequency()) {
    missing.push_back({{"op", op}, {"cases", count}});
  }
  const nlohmann::json root = {{"cases", tally.cases},
                               {"missing", std::move(missing)},
                               {"passed", tally.passed},
                               {"failed", tally.failed},
                               {"skipped", tally.skipped}};
  fmt::print("{}\n", root.dump(-1, ' ', false,
                               nlohmann::json::error_handler_t::replace));
}

Failure run_cases(const ConformOptions& options) {
  auto session_options = to_session_options(options.engine);
  if (!session_options.ok()) return usage_error(session_options.status());
  // Cases ask for the devices of the machine that they were recorded on.
  session_options->soft_placement = true;
  for (const std::string& folder : options.folders) {
    if (fs::is_directory(folder)) continue;
    if (fs::exists(folder))
      return usage_error(invalid_argument(
          "[conform] \"{}\" is a file; a case is a folder with graph.pb and "
          "case.json in it",
          folder));
    return file_error(
        error(Code::kNotFound, "[conform] there is no folder \"{}\"", folder));
  }
  Tally tally;
  for (const std::string& folder : options.folders) {
    const fs::path path(folder);
    if (!fs::exists(path / "case.json") || !fs::exists(path / "graph.pb")) {
      continue;
    }
    const Verdict verdict = judge_case(path, *session_options);
    tally.add(verdict);
    if (verdict.outcome == Outcome::kFailed) {
      spdlog::error("{}: {}", verdict.name, verdict.what);
    }
  }
  if (tally.cases.empty())
    spdlog::warn("no folder named has graph.pb and case.json in it");
  if (options.json) {
    print_json(tally);
  } else {
    for (const auto& [op, count] : tally.by_frequency()) {
      print_text(fmt::format("missing {} in {}\n", op,
                             counted(size_t(count), "case")));
    }
  }
  fmt::print("{} passed, {} failed, {} skipped\n", tally.passed, tally.failed,
             tally.skipped);
  std::fflush(stdout);
  const bool failed = tally.failed > 0;
  return {failed ? ExitCode::kRunTimeError : ExitCode::kOk,
          failed ? invalid_argument("[conform] {} failed",
                                    counted(size_t(tally.failed), "case"))
                 : Status()};
}

}  // namespace

void add_conform_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<ConformOptions>();
  CLI::App* conform =
      app.add_subcommand("conform", "check recorded cases, a folder each");
  conform
      ->add_option("folders", options->folders,
                   "folders with graph.pb and case.json; others are passed "
                   "over")
      ->required()
      ->type_name("DIR...");
  conform->add_flag("--json", options->json,
                    "print a JSON object of all cases before the last line");
  add_engine_options(*conform, options->engine);
  conform->callback(
      [options, &exit_code] { exit_code = report(run_cases(*options)); });
}

}  // namespace tagflow::apps
