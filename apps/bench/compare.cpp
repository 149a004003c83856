#include "apps/bench/compare.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "apps/bench/compare_entries.h"
#include "apps/bench/compare_script.h"
#include "apps/common/child_process.h"
#include "apps/common/terminal.h"
#include "apps/io/file.h"
#include "graph/graphdef.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

// A folder that goes when this does.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::string path = (fs::temp_directory_path() / "tagflow-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      return error(Code::kPermissionDenied,
                   "[bench] cannot make a temporary folder \"{}\"", path);
    }
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, fs::path())) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code code;
    if (!path_.empty()) fs::remove_all(path_, code);
  }

  const fs::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}

  fs::path path_;
};

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

// TensorFlow in a process of its own.
class Rival {
 public:
  static Result<Rival> start(const std::string& python,
                             const fs::path& manifest) {
    TAGFLOW_ASSIGN(
        ChildProcess process,
        ChildProcess::start({python, "-c", kCompareScript, manifest.string()}));
    const Result<std::string> line = process.read_line();
    if (!line.ok() || !line->starts_with("ready ")) {
      return error(Code::kFailedPrecondition,
                   "[bench] \"{}\" did not start: can it import tensorflow?",
                   python);
    }
    return Rival(std::move(process), line->substr(6));
  }

  const std::string& version() const { return version_; }

  // Seconds of a run of the entry.
  Result<double> seconds(size_t entry) {
    TAGFLOW_RETURN_IF_ERROR(process_.write_line(std::to_string(entry)));
    TAGFLOW_ASSIGN(const std::string line, process_.read_line());
    double value = 0;
    const auto [end, code] =
        std::from_chars(line.data(), line.data() + line.size(), value);
    if (code != std::errc() || end != line.data() + line.size()) {
      return error(Code::kDataLoss, "[bench] TensorFlow answered \"{}\"", line);
    }
    return value;
  }

 private:
  Rival(ChildProcess process, std::string version)
      : process_(std::move(process)), version_(std::move(version)) {}

  ChildProcess process_;
  std::string version_;
};

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
    TAGFLOW_ASSIGN(const double a, rival.seconds(index));
    TAGFLOW_ASSIGN(const double b, own_seconds(entry, options));
    theirs.push_back(entry.figure(a));
    ours.push_back(entry.figure(b));
    ratios.push_back(a / b);
  }
  return Row{median(std::move(theirs)), median(std::move(ours)),
             median(std::move(ratios))};
}

// "Intel(R) ...", for the table's caption.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "an unknown processor";
}

// Four digits that count, without an exponent.
std::string four_digits(double value) {
  return value < 1e4 ? fmt::format("{:.4g}", value)
                     : fmt::format("{:.0f}", value);
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
  TAGFLOW_ASSIGN(Rival rival, Rival::start(options.python, manifest));
  if (!options.json) {
    print_text(fmt::format(
        "{} hardware threads of {}, TensorFlow {}\n\n"
        "| workload | TensorFlow | tagflow | unit | times better |\n"
        "|---|--:|--:|---|--:|\n",
        sysconf(_SC_NPROCESSORS_ONLN), processor_name(), rival.version()));
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
