// chaos: trains on three workers, and kills, stops and cuts at random.
//
//   three workers, and the command `tagflow run --save --restarts`, each a
//   process in a network of its own
//      ^ faults, as a seed draws them
//   the last checkpoint == that of the run that nobody disturbs, bit for bit
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/chaos/schedule.h"
#include "apps/chaos/schedule_run.h"
#include "apps/chaos/switch.h"
#include "apps/chaos/training.h"
#include "apps/shared/io/private_folder.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/program.h"
#include "apps/shared/program/terminal.h"
#include "net/config/secret_file.h"

namespace {

using namespace tagflow;         // NOLINT: a main file
using namespace tagflow::apps;   // NOLINT
using namespace tagflow::chaos;  // NOLINT
using Clock = std::chrono::steady_clock;

struct Options {
  uint64_t seed = 1;
  int schedules = 10;
  int64_t steps = 120;
  int64_t seconds = 0;  // 0: no limit
  int64_t bound = 60;
  bool keeps = false;
};

// The times of a row of the table.
struct Row {
  int count = 0;
  std::vector<double> detected, goes_on;
  std::map<Phase, int> in_phase;
};

std::string cells(std::vector<double> times) {
  if (times.empty()) return "- | - | -";
  std::ranges::sort(times);
  return fmt::format("{} | {:.0f} | {:.0f}", times.size(),
                     times[times.size() / 2], times.back());
}

std::string time_text(const char* what, std::optional<double> ms) {
  return ms ? fmt::format("; {} after {:.0f} ms", what, *ms) : std::string();
}

Result<std::filesystem::path> find_command() {
  std::error_code code;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", code);
  auto command = self.parent_path() / "tagflow";
  if (code || !std::filesystem::exists(command, code))
    return error(Code::kNotFound, "[chaos] there is no {:?}", command.string());
  return command;
}

class Chaos {
 public:
  explicit Chaos(const Options& options) : options_(options) {}

  Status run() {
    TAGFLOW_ASSIGN(setting_.command, find_command());
    TAGFLOW_ASSIGN(auto folder, io::PrivateFolder::make());
    setting_.folder = folder.path();
    setting_.steps = options_.steps;
    setting_.bound = std::chrono::seconds(options_.bound);
    TAGFLOW_RETURN_IF_ERROR(write_training(folder.path() / "graph.pb"));
    TAGFLOW_RETURN_IF_ERROR(net::write_new_secret(folder.path() / "secret"));
    auto network = Switch::make(kWorkers + 1, options_.seed);
    if (network.ok())
      setting_.network = network->get();
    else
      spdlog::warn("{}; no line is cut, and no clock is ahead",
                   network.status().message());
    RunReport undisturbed = run_schedule(setting_, "undisturbed", {});
    TAGFLOW_RETURN_IF_ERROR(
        std::move(undisturbed.status).with_prefix("undisturbed: "));
    if (undisturbed.restarts > 0 || undisturbed.commands != 1)
      return error(Code::kInternal,
                   "[chaos] nobody disturbs it, and it "
                   "restarts");
    setting_.expected = &undisturbed.lines;
    const auto begin = Clock::now();
    for (int k = 0; k < options_.schedules; ++k) {
      if (options_.seconds > 0 &&
          Clock::now() - begin > std::chrono::seconds(options_.seconds))
        break;
      run_one(options_.seed + uint64_t(k));
    }
    print_tables();
    if (failed_.empty()) return {};
    return error(Code::kInternal, "[chaos] {} of {} schedules failed: seeds {}",
                 failed_.size(), count_, fmt::join(failed_, ", "));
  }

 private:
  void run_one(uint64_t seed) {
    setting_.workers_write = seed % 2 == 1;
    const auto faults =
        draw_faults(seed, options_.steps,
                    {.has_network = setting_.network != nullptr,
                     .is_clock_ours = setting_.network != nullptr,
                     .workers_write = setting_.workers_write});
    RunReport report = run_schedule(setting_, "disturbed", faults);
    if (setting_.network != nullptr) setting_.network->heal_all();
    const auto save = setting_.folder / "disturbed";
    if (report.status.ok())
      report.status = check_checkpoints(save, setting_.folder / "undisturbed",
                                        options_.steps);
    ++count_;
    std::string text = fmt::format(
        "seed {}: {}; {} restarts, {} commands, {:.1f} s; saved by "
        "{}\n",
        seed, report.status.ok() ? "ok" : "FAILED", report.restarts,
        report.commands, report.seconds,
        setting_.workers_write ? "the workers" : "the master");
    for (size_t k = 0; k < faults.size(); ++k) {
      const Measured& measured = report.faults[k];
      text += fmt::format("  {}{}{}{}\n", faults[k].to_string(),
                          measured.has_come ? "" : " (has not come)",
                          time_text("detected", measured.detected),
                          time_text("goes on", measured.goes_on));
      if (!measured.has_come) continue;
      Row& row = rows_[measured.row];
      ++row.count;
      ++row.in_phase[faults[k].phase];
      if (measured.detected) row.detected.push_back(*measured.detected);
      if (measured.goes_on) row.goes_on.push_back(*measured.goes_on);
    }
    if (!report.status.ok()) {
      failed_.push_back(seed);
      text += fmt::format("  {}\n", report.status.to_string());
    }
    print_text(text);
    (void)flush_stdout();
    std::error_code ignored;
    if (options_.keeps && !report.status.ok())
      std::filesystem::rename(save, fmt::format("chaos-{}", seed), ignored);
    std::filesystem::remove_all(save, ignored);
  }

  // The times of each fault, and how often it came in each phase.
  void print_tables() {
    std::string text = fmt::format(
        "{} of {} schedules passed\n"
        "| fault | faults | detected | median | longest | goes on | median | "
        "longest |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
        count_ - int(failed_.size()), count_);
    for (const auto& [name, row] : rows_)
      text += fmt::format("| {} | {} | {} | {} |\n", name, row.count,
                          cells(row.detected), cells(row.goes_on));
    text += "| fault |";
    for (int k = 0; k <= int(Phase::kEnd); ++k)
      text += fmt::format(" {} |", name_of(Phase(k)));
    text += "\n|---|";
    for (int k = 0; k <= int(Phase::kEnd); ++k) text += "--:|";
    for (auto& [name, row] : rows_) {
      text += fmt::format("\n| {} |", name);
      for (int k = 0; k <= int(Phase::kEnd); ++k)
        text += fmt::format(" {} |", row.in_phase[Phase(k)]);
    }
    print_text(text + "\n");
  }

  const Options& options_;
  Setting setting_;
  std::map<std::string, Row> rows_;
  std::vector<uint64_t> failed_;
  int count_ = 0;
};

ExitCode run(int argc, char** argv) {
  CLI::App app(
      "Kills, stops and cuts three workers and their master at random while a "
      "model trains, and compares with the undisturbed run. Times are in ms.",
      "chaos");
  Options options;
  ExitCode exit_code = ExitCode::kOk;
  app.add_option("--seed", options.seed, "of the first schedule")
      ->capture_default_str();
  app.add_option("--schedules", options.schedules,
                 "how many, each with the next seed")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seconds", options.seconds,
                 "begin no schedule after that time; 0: no limit")
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}));
  app.add_option("--steps", options.steps, "of each training")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{2}, int64_t{1'000'000}));
  app.add_option("--bound", options.bound,
                 "seconds after which a schedule hangs")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{100'000}));
  app.add_flag("--keep", options.keeps,
               "keep the checkpoints of a schedule that failed, as "
               "chaos-SEED");
  app.callback(
      [&] { exit_code = report(run_time_error(Chaos(options).run())); });
  return parse_and_run(app, argc, argv, exit_code);
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, run); }
