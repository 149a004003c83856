#include "apps/bench/compare.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "apps/bench/compare_entries.h"
#include "apps/bench/compare_results.h"
#include "apps/bench/compare_script.h"
#include "apps/bench/rival.h"
#include "apps/bench/stopwatch.h"
#include "apps/shared/io/file.h"
#include "apps/shared/program/terminal.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

int repeats_of(const CompareEntry& entry, const CompareOptions& options) {
  return std::min(entry.most_repeats, options.bench.repeats);
}

// The prefix of the names of files that TensorFlow writes for an entry.
std::string results_of(const fs::path& folder, size_t entry) {
  return (folder / fmt::format("{}.results", entry)).string();
}

// Writes graphs and manifest; returns the manifest's path.
Result<fs::path> write_manifest(const std::vector<CompareEntry>& entries,
                                const CompareOptions& options,
                                const fs::path& folder) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < entries.size(); ++i) {
    const CompareEntry& entry = entries[i];
    const fs::path path = folder / fmt::format("{}.pb", i);
    TAGFLOW_RETURN_IF_ERROR(graph::save_graph(entry.graph.graph, path));
    list.push_back({{"name", entry.name},
                    {"graph", path.string()},
                    {"feeds", entry.graph.feeds},
                    {"fetches", entry.graph.fetches},
                    {"targets", entry.graph.targets},
                    {"trips", entry.trips},
                    {"base_trips", entry.base_trips},
                    {"inner", entry.inner},
                    {"devices", entry.devices},
                    {"workers", entry.workers},
                    {"as_written", entry.every_node_fires},
                    {"threads", entry.threads},
                    {"init", entry.graph.init},
                    {"written", entry.graph.written},
                    {"program", entry.program},
                    {"sizes", entry.sizes},
                    {"results", results_of(folder, i)},
                    {"repeats", repeats_of(entry, options)}});
  }
  const nlohmann::json manifest = {{"entries", std::move(list)}};
  const fs::path path = folder / "manifest.json";
  TAGFLOW_RETURN_IF_ERROR(io::write_file(path, manifest.dump()));
  return path;
}

// Seconds of a run of the entry in TensorFlow, by way of running.
using Ways = std::map<std::string, double>;

Result<Ways> rival_seconds(Rival& rival, size_t entry) {
  TAGFLOW_ASSIGN(const std::string line, rival.ask(entry));
  const auto json = nlohmann::json::parse(line, nullptr, false);
  try {
    auto ways = json.get<Ways>();
    if (!ways.empty()) return ways;
  } catch (const nlohmann::json::exception&) {
  }
  return error(Code::kDataLoss, "[bench] TensorFlow answered \"{}\"", line);
}

// The session options for the entry here.
EngineOptions engine_of(const CompareEntry& entry,
                        const CompareOptions& options) {
  EngineOptions engine = options.bench.engine;
  if (entry.every_node_fires && engine.passes.empty()) engine.passes = "none";
  if (entry.threads > 0) engine.workers = entry.threads;
  if (entry.devices > 1) engine.devices = fmt::format("cpu:{}", entry.devices);
  return engine;
}

Result<double> own_seconds(const CompareEntry& entry,
                           const CompareOptions& options, bool mailbox_only) {
  BenchOptions bench = options.bench;
  bench.repeats = repeats_of(entry, options);
  bench.engine = engine_of(entry, options);
  bench.engine.mailbox_only = bench.engine.mailbox_only || mailbox_only;
  if (entry.own) return entry.own(bench);
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(bench.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(entry.graph, session));
  const int repeats = bench.repeats;
  if (entry.trips == 0) return run.seconds({}, repeats, entry.inner);
  const Tensor few = Tensor::scalar<int32_t>(entry.base_trips);
  const Tensor all = Tensor::scalar<int32_t>(entry.trips);
  TAGFLOW_ASSIGN(const double base, run.seconds({&few, 1}, repeats));
  TAGFLOW_ASSIGN(const double full, run.seconds({&all, 1}, repeats));
  return full - base;
}

// The figures of an entry; those without a measurement are missing.
struct Row {
  double ours = 0;
  std::optional<double> rival, mailbox;
  std::string way = "-";             // TensorFlow's fastest
  std::optional<double> ratio;       // the factor by which ours is better
  std::optional<double> difference;  // of the results, if they are compared
};

// Figures from the rounds: TensorFlow's is that of the way with the smallest
// median.
Row row_of(const CompareEntry& entry, const std::vector<Ways>& theirs,
           const std::vector<double>& ours,
           const std::vector<double>& mailbox) {
  Row row;
  row.ours = entry.figure(median(ours));
  if (!mailbox.empty()) row.mailbox = entry.figure(median(mailbox));
  if (theirs.empty()) return row;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [way, unused] : theirs.front()) {
    std::vector<double> seconds, ratios;
    for (size_t i = 0; i < theirs.size(); ++i) {
      const auto at = theirs[i].find(way);
      if (at == theirs[i].end()) continue;
      seconds.push_back(at->second);
      ratios.push_back(at->second / ours[i]);
    }
    const double middle = median(std::move(seconds));
    if (middle > least) continue;
    least = middle;
    row.way = way;
    row.ratio = median(std::move(ratios));
  }
  row.rival = entry.figure(least);
  return row;
}

Result<Row> compare_entry(const CompareEntry& entry, size_t index, Rival& rival,
                          const CompareOptions& options,
                          const fs::path& folder) {
  std::optional<double> difference;
  std::vector<Ways> theirs;
  std::vector<double> ours, mailbox;
  if (entry.prepare) TAGFLOW_RETURN_IF_ERROR(entry.prepare());
  for (int round = 0; round < options.rounds; ++round) {
    if (entry.has_rival) {
      TAGFLOW_ASSIGN(theirs.emplace_back(), rival_seconds(rival, index));
    }
    if (!entry.program.empty() && !entry.graph.compared.empty() && round == 0) {
      TAGFLOW_ASSIGN(difference,
                     compare_results(entry, results_of(folder, index),
                                     engine_of(entry, options)));
    }
    // A warm-up, since a process that was idle is slow at first. TensorFlow's
    // ways follow one another, so this affects only the first of them.
    TAGFLOW_RETURN_IF_ERROR(own_seconds(entry, options, false).status());
    TAGFLOW_ASSIGN(ours.emplace_back(), own_seconds(entry, options, false));
    if (entry.own) continue;
    TAGFLOW_ASSIGN(mailbox.emplace_back(), own_seconds(entry, options, true));
  }
  Row row = row_of(entry, theirs, ours, mailbox);
  row.difference = difference;
  return row;
}

void print_head(const Rival& rival, const CompareOptions& options) {
  print_text(
      fmt::format("{}\n"
                  "| workload | TensorFlow | how | tagflow | mailbox only "
                  "| unit | times better |\n"
                  "|---|--:|---|--:|--:|---|--:|\n",
                  caption(rival, options.rounds)));
}

void print_row(const CompareEntry& entry, const Row& row, bool json) {
  if (json) {
    const auto or_null = [](std::optional<double> value) {
      return value ? nlohmann::json(*value) : nlohmann::json();
    };
    const nlohmann::json line = {{"name", entry.name},
                                 {"what", entry.what},
                                 {"tensorflow", or_null(row.rival)},
                                 {"how", row.way},
                                 {"tagflow", row.ours},
                                 {"mailbox", or_null(row.mailbox)},
                                 {"ratio", or_null(row.ratio)},
                                 {"difference", or_null(row.difference)},
                                 {"unit", entry.unit}};
    print_text(line.dump() + "\n");
    return;
  }
  const auto figure = [](std::optional<double> value) {
    return value ? four_digits(*value) : "-";
  };
  print_text(fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", entry.what,
                         figure(row.rival), row.way, figure(row.ours),
                         figure(row.mailbox), entry.unit,
                         row.ratio ? fmt::format("{:.3g}", *row.ratio) : "-"));
}

Status compare_all(const std::vector<CompareEntry>& entries,
                   const CompareOptions& options) {
  TAGFLOW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  TAGFLOW_ASSIGN(const fs::path manifest,
                 write_manifest(entries, options, folder.path()));
  std::optional<Rival> rival;
  for (size_t i = 0; i < entries.size(); ++i) {
    // In TensorFlow all sessions of a process share the kernel threads of the
    // first one.
    if (i == 0 || entries[i].threads != entries[i - 1].threads) {
      rival.reset();
      TAGFLOW_ASSIGN(Rival next,
                     Rival::start(options.python, kCompareScript, manifest));
      rival.emplace(std::move(next));
    }
    if (i == 0 && !options.json) print_head(*rival, options);
    TAGFLOW_ASSIGN(const Row row, compare_entry(entries[i], i, *rival, options,
                                                folder.path()));
    print_row(entries[i], row, options.json);
    // The end of the program reports errors of stdout.
    if (!flush_stdout().ok()) return {};
  }
  return {};
}

}  // namespace

Failure compare_with_tensorflow(const CompareOptions& options) {
  Result<std::vector<CompareEntry>> entries =
      compare_entries(options.only, options.over_workers);
  if (!entries.ok()) return run_time_error(std::move(entries).status());
  if (entries->empty()) {
    return usage_error(invalid_argument(
        "[bench] no workload named \"{}\" is compared", options.only));
  }
  Status status = compare_all(*entries, options);
  if (status.ok()) return {};
  return file_error(std::move(status));
}

}  // namespace tagflow::apps
