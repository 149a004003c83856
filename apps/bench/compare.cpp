#include "apps/bench/compare.h"

#include <spdlog/spdlog.h>

#include <charconv>

#include "apps/bench/compare_entries.h"
#include "apps/bench/compare_script.h"
#include "apps/bench/rival.h"
#include "apps/common/terminal.h"
#include "apps/io/file.h"
#include "graph/graphdef.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

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
                    {"inner", entry.inner},
                    {"devices", entry.devices},
                    {"repeats", options.bench.repeats}});
  }
  const nlohmann::json manifest = {{"threads", options.threads},
                                   {"entries", std::move(list)}};
  const fs::path path = folder / "manifest.json";
  TAGFLOW_RETURN_IF_ERROR(io::write_file(path, manifest.dump()));
  return path;
}

// Seconds of a run of the entry in TensorFlow.
Result<double> rival_seconds(Rival& rival, size_t entry) {
  TAGFLOW_ASSIGN(const std::string line, rival.ask(entry));
  double value = 0;
  const auto [end, code] =
      std::from_chars(line.data(), line.data() + line.size(), value);
  if (code != std::errc() || end != line.data() + line.size()) {
    return error(Code::kDataLoss, "[bench] TensorFlow answered \"{}\"", line);
  }
  return value;
}

Result<double> own_seconds(const CompareEntry& entry,
                           const CompareOptions& options) {
  EngineOptions engine = options.bench.engine;
  if (entry.every_node_fires && engine.passes.empty()) engine.passes = "none";
  if (entry.one_thread) engine.workers = 1;
  if (entry.devices > 1) engine.devices = fmt::format("cpu:{}", entry.devices);
  TAGFLOW_ASSIGN(actors::SessionOptions session, to_session_options(engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(entry.graph, session));
  const int repeats = options.bench.repeats;
  if (entry.trips == 0) return run.seconds({}, repeats, entry.inner);
  const Tensor none = Tensor::scalar<int32_t>(0);
  const Tensor all = Tensor::scalar<int32_t>(entry.trips);
  TAGFLOW_ASSIGN(const double base, run.seconds({&none, 1}, repeats));
  TAGFLOW_ASSIGN(const double full, run.seconds({&all, 1}, repeats));
  return full - base;
}

struct Row {
  double rival = 0, ours = 0;  // figures
  double ratio = 0;            // how many times better ours is
};

Result<Row> compare_entry(const CompareEntry& entry, size_t index, Rival& rival,
                          const CompareOptions& options) {
  std::vector<double> theirs, ours, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    TAGFLOW_ASSIGN(const double a, rival_seconds(rival, index));
    TAGFLOW_ASSIGN(const double b, own_seconds(entry, options));
    theirs.push_back(entry.figure(a));
    ours.push_back(entry.figure(b));
    ratios.push_back(a / b);
  }
  return Row{median(std::move(theirs)), median(std::move(ours)),
             median(std::move(ratios))};
}

void print_row(const CompareEntry& entry, const Row& row, bool json) {
  if (json) {
    const nlohmann::json line = {
        {"name", entry.name},  {"what", entry.what}, {"tensorflow", row.rival},
        {"tagflow", row.ours}, {"ratio", row.ratio}, {"unit", entry.unit}};
    print_text(line.dump() + "\n");
  } else {
    print_text(fmt::format("| {} | {} | {} | {} | {:.3g} |\n", entry.what,
                           four_digits(row.rival), four_digits(row.ours),
                           entry.unit, row.ratio));
  }
}

Status compare_all(const std::vector<CompareEntry>& entries,
                   const CompareOptions& options) {
  TAGFLOW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  TAGFLOW_ASSIGN(const fs::path manifest,
                 write_manifest(entries, options, folder.path()));
  TAGFLOW_ASSIGN(Rival rival,
                 Rival::start(options.python, kCompareScript, manifest));
  if (!options.json) {
    print_text(fmt::format(
        "{}\n\n"
        "| workload | TensorFlow | tagflow | unit | times better |\n"
        "|---|--:|--:|---|--:|\n",
        describe_machine(rival)));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    TAGFLOW_ASSIGN(const Row row, compare_entry(entries[i], i, rival, options));
    print_row(entries[i], row, options.json);
    // Which the end of the program reports.
    if (!flush_stdout().ok()) return {};
  }
  return {};
}

}  // namespace

Failure compare_with_tensorflow(const CompareOptions& options) {
  Result<std::vector<CompareEntry>> entries = compare_entries(options.only);
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
