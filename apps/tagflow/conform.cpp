// tagflow conform: runs recorded cases, each in a separate session.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "actors/session/backend.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/shared/runs/engine_options.h"
#include "apps/shared/runs/interrupt.h"
#include "apps/shared/runs/named_cluster.h"
#include "apps/shared/runs/progress.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/conform/case.h"
#include "apps/tagflow/conform/judge.h"
#include "apps/tagflow/model/op_libraries.h"
#include "graph/counted.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

struct ConformOptions {
  std::vector<std::string> folders;
  std::vector<std::string> op_libraries;
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

  // The missing ops, the most frequent first.
  std::vector<std::pair<std::string, int>> by_frequency() const {
    std::vector<std::pair<std::string, int>> ops(missing.begin(),
                                                 missing.end());
    std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) {
      return a.second > b.second;
    });
    return ops;
  }
};

void print_tally(const Tally& tally, bool json) {
  if (json) {
    nlohmann::json missing = nlohmann::json::array();
    for (const auto& [op, count] : tally.by_frequency())
      missing.push_back({{"op", op}, {"cases", count}});
    const nlohmann::json root = {{"cases", tally.cases},
                                 {"missing", std::move(missing)},
                                 {"passed", tally.passed},
                                 {"failed", tally.failed},
                                 {"skipped", tally.skipped}};
    print_text(
        root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n");
  } else {
    for (const auto& [op, count] : tally.by_frequency())
      print_text(fmt::format("missing {} in {}\n", op,
                             counted(size_t(count), "case")));
  }
  print_text(fmt::format("{} passed, {} failed, {} skipped\n", tally.passed,
                         tally.failed, tally.skipped));
}

// The first few of the named paths.
Status no_case_in(const std::vector<std::string>& folders) {
  constexpr size_t kShown = 5;
  const auto quoted = [](const std::string& folder) {
    return fmt::format("\"{}\"", folder);
  };
  return error(
      Code::kNotFound,
      "[conform] there is no case, a folder with graph.pb and case.json in it, "
      "in {}",
      first_of(folders, kShown, quoted));
}

// All cases of the folders; an error if there is none.
Failure collect_cases(const std::vector<std::string>& folders,
                      std::vector<fs::path>& cases) {
  for (const std::string& folder : folders) {
    std::error_code code;
    const fs::file_status status = fs::status(folder, code);
    if (fs::is_directory(status)) continue;
    if (fs::exists(status))
      return usage_error(invalid_argument(
          "[conform] \"{}\" is a file; a case is a folder with graph.pb and "
          "case.json in it",
          folder));
    return file_error(
        error(Code::kNotFound, "[conform] there is no folder \"{}\"", folder));
  }
  for (const std::string& folder : folders) {
    const auto found = find_cases(folder);
    if (!found.ok()) return file_error(found.status());
    cases.insert(cases.end(), found->begin(), found->end());
  }
  return cases.empty() ? file_error(no_case_in(folders)) : Failure();
}

Failure run_cases(const ConformOptions& options) {
  Failure failure = load_op_libraries(options.op_libraries);
  if (failure.exit_code != ExitCode::kOk) return failure;
  EngineOptions engine = options.engine;
  failure = connect_cluster(engine);
  if (failure.exit_code != ExitCode::kOk) return failure;
  auto session_options = to_session_options(engine);
  if (!session_options.ok()) return usage_error(session_options.status());
  // Cases request the devices of the machine that recorded them.
  session_options->soft_placement = true;
  std::vector<fs::path> cases;
  failure = collect_cases(options.folders, cases);
  if (failure.exit_code != ExitCode::kOk) return failure;

  Tally tally;
  const Interruptible interruptible;
  Progress progress("case", 0, int64_t(cases.size()), is_terminal());
  for (const fs::path& path : cases) {
    // Workers keep the state of a session until their master leaves, and a case
    // begins without any: each has a master of its own.
    engine.backend = session_options->backend = nullptr;
    failure = connect_cluster(engine);
    if (failure.exit_code != ExitCode::kOk) return failure;
    session_options->backend = engine.backend;
    // Those of a service stay.
    if (names_service(engine.cluster))
      if (Status emptied = engine.backend->reset({""}); !emptied.ok())
        return run_time_error(std::move(emptied).with_prefix("[conform] "));
    const Verdict verdict =
        judge_case(path, *session_options, interruptible.token());
    if (interruptible.signal() != 0) break;  // ignores its verdict
    // The other cases could not run there either.
    if (verdict.code == Code::kUnavailable)
      return run_time_error(
          error(verdict.code, "[conform] {}: {}", verdict.name, verdict.what));
    tally.add(verdict);
    if (verdict.outcome == Outcome::kFailed) {
      progress.clear();
      spdlog::error("{}: {}", verdict.name, verdict.what);
    }
    progress.after(int64_t(tally.cases.size()));
  }
  progress.clear();
  print_tally(tally, options.json);
  // Flushes stdout before logging, if both go to the same place.
  (void)flush_stdout();
  if (interruptible.signal() != 0)
    return interruptible.failure_of(
        error(Code::kCancelled, "[conform] {} of {} are left, from \"{}\" on",
              cases.size() - tally.cases.size(), counted(cases.size(), "case"),
              cases[tally.cases.size()].string()));
  if (tally.failed == 0) return {};
  return run_time_error(invalid_argument(
      "[conform] {} failed", counted(size_t(tally.failed), "case")));
}

}  // namespace

void add_conform_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<ConformOptions>();
  CLI::App* conform =
      app.add_subcommand("conform", "check recorded cases, a folder each");
  conform
      ->add_option("folders", options->folders,
                   "folders with graph.pb and case.json, or with such folders "
                   "in them; other folders are skipped")
      ->required()
      ->type_name("DIR...");
  conform->add_flag("--json", options->json,
                    "print a JSON object of all cases before the last line");
  append_to_footer(
      *conform,
      "A case is a graph, what was fed to it, and what came out, as a run of\n"
      "TensorFlow recorded them: graph.pb, .npy files (.json files for\n"
      "strings) in the same folder, and case.json:\n"
      "  {\"name\": NAME, \"runs\": [{\"targets\": [NODE...],\n"
      "   \"feeds\": {PORT: FILE...}, \"fetches\": [PORT...],\n"
      "   \"expect\": [FILE...]}]}\n"
      "For a run that failed, \"error\": {\"code\": "
      "\"InvalidArgumentError\"},\n"
      "or another code, takes the place of \"expect\". With\n"
      "  \"gradients\": {\"ys\": [PORT...], \"xs\": [PORT...], "
      "\"order\": K}\n"
      "beside \"runs\", the graph is extended as by `tagflow gradients`.");
  add_op_library_option(*conform, options->op_libraries);
  add_engine_options(*conform, options->engine);
  conform->callback([options, &exit_code] {
    options->engine.keeps_stdout = options->json;
    exit_code = report(run_cases(*options));
  });
}

}  // namespace tagflow::apps
