#include "apps/bench/models.h"

#include <spdlog/spdlog.h>

#include <cmath>

#include "apps/bench/models_script.h"
#include "apps/bench/rival.h"
#include "apps/bench/stopwatch.h"
#include "apps/common/terminal.h"
#include "apps/io/file.h"
#include "apps/io/npy.h"
#include "graph/graphdef.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

struct ModelEntry {
  std::string_view name;  // as the script knows it
  std::string_view what;
  int batch;
};

constexpr ModelEntry kModels[] = {
    {"mobilenet", "MobileNetV2, 224 x 224 x 3", 1},
    {"resnet", "ResNet50, 224 x 224 x 3", 1},
    {"efficientnet", "EfficientNetB0, 224 x 224 x 3", 1},
    {"lstm", "LSTM of 128 units, 100 x 64", 32},
    {"bigru", "BiGRU of 128 units, 100 x 64", 32},
    {"transformer", "Transformer encoder, 4 layers, 64 x 256", 8},
};

Result<std::vector<ModelEntry>> chosen(const CompareOptions& options) {
  std::vector<ModelEntry> entries;
  std::string names;
  for (ModelEntry entry : kModels) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", entry.name);
    if (!options.only.empty() && entry.name != options.only) continue;
    if (options.bench.batch > 0) entry.batch = options.bench.batch;
    entries.push_back(entry);
  }
  if (entries.empty())
    return invalid_argument("[bench] no model is named \"{}\"; there is {}",
                            options.only, names);
  return entries;
}

Result<fs::path> write_manifest(const std::vector<ModelEntry>& entries,
                                const CompareOptions& options,
                                const fs::path& folder) {
  nlohmann::json list = nlohmann::json::array();
  for (const ModelEntry& entry : entries)
    list.push_back({{"name", entry.name}, {"batch", entry.batch}});
  const nlohmann::json manifest = {{"folder", folder.string()},
                                   {"repeats", options.bench.repeats},
                                   {"models", std::move(list)}};
  const fs::path path = folder / "manifest.json";
  TAGFLOW_RETURN_IF_ERROR(io::write_file(path, manifest.dump()));
  return path;
}

// What TensorFlow says of a model.
struct Answer {
  std::string feed, fetch, how;
  double seconds = 0;
};

Result<Answer> ask(Rival& rival, size_t index) {
  TAGFLOW_ASSIGN(const std::string line, rival.ask(index));
  const auto json = nlohmann::json::parse(line, nullptr, false);
  try {
    return Answer{json.at("feed"), json.at("fetch"), json.at("how"),
                  json.at("seconds")};
  } catch (const nlohmann::json::exception&) {
    return error(Code::kDataLoss, "[bench] TensorFlow answered \"{}\"", line);
  }
}

// The largest difference, as a part of the largest expected element.
Result<double> difference(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != DataType::kFloat ||
      expected.dtype() != DataType::kFloat ||
      !(actual.shape() == expected.shape()))
    return error(Code::kDataLoss,
                 "[bench] the result is {}, TensorFlow's is {}",
                 actual.describe(), expected.describe());
  double most = 0, largest = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double wanted = expected.data<float>()[i];
    const double off = std::abs(actual.data<float>()[i] - wanted);
    // Not by max(), which would lose what is no number.
    if (!(off <= most)) most = off;
    largest = std::max(largest, std::abs(wanted));
  }
  return most / std::max(largest, 1e-30);
}

struct ModelRow {
  double theirs = 0, ours = 0;  // milliseconds
  double ratio = 0;             // how many times faster ours is
  double difference = 0;
  std::string how;
};

Result<ModelRow> compare_model(const ModelEntry& entry, size_t index,
                               Rival& rival, const CompareOptions& options,
                               const fs::path& folder) {
  TAGFLOW_ASSIGN(const Answer made, ask(rival, index));
  const auto file = [&](std::string_view ending) {
    return folder / fmt::format("{}{}", entry.name, ending);
  };
  BenchGraph graph;
  TAGFLOW_ASSIGN(graph.graph, graph::load_graph(file(".pb")));
  graph.feeds = {made.feed};
  graph.fetches = {made.fetch};
  TAGFLOW_ASSIGN(const Tensor feed, io::read_npy(file(".feed.npy")));
  TAGFLOW_ASSIGN(const Tensor expected, io::read_npy(file(".fetch.npy")));
  TAGFLOW_ASSIGN(const actors::SessionOptions session,
                 to_session_options(options.bench.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  TAGFLOW_ASSIGN(const std::vector<Tensor> results, run.results({&feed, 1}));
  ModelRow row;
  row.how = made.how;
  TAGFLOW_ASSIGN(row.difference, difference(results[0], expected));
  if (!(row.difference <= kModelTolerance))
    return error(
        Code::kDataLoss,
        "[bench] {}: the result differs from TensorFlow's by {:.2g} of "
        "its largest element, more than {:.2g}",
        entry.name, row.difference, kModelTolerance);
  std::vector<double> theirs, ours, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    TAGFLOW_ASSIGN(const Answer answer, ask(rival, index));
    TAGFLOW_ASSIGN(const double seconds,
                   run.seconds({&feed, 1}, options.bench.repeats));
    theirs.push_back(answer.seconds * 1e3);
    ours.push_back(seconds * 1e3);
    ratios.push_back(answer.seconds / seconds);
  }
  row.theirs = median(std::move(theirs));
  row.ours = median(std::move(ours));
  row.ratio = median(std::move(ratios));
  return row;
}

void print_row(const ModelEntry& entry, const ModelRow& row, bool json) {
  if (json) {
    const nlohmann::json line = {
        {"name", entry.name},   {"what", entry.what},
        {"batch", entry.batch}, {"tensorflow", row.theirs},
        {"how", row.how},       {"tagflow", row.ours},
        {"ratio", row.ratio},   {"difference", row.difference},
        {"unit", "ms"}};
    print_text(line.dump() + "\n");
  } else {
    print_text(fmt::format("| {} | {} | {} | {} | {} | {:.3g} |\n", entry.what,
                           entry.batch, four_digits(row.theirs), row.how,
                           four_digits(row.ours), row.ratio));
  }
}

Status compare_chosen(const std::vector<ModelEntry>& entries,
                      const CompareOptions& options) {
  TAGFLOW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  TAGFLOW_ASSIGN(const fs::path manifest,
                 write_manifest(entries, options, folder.path()));
  TAGFLOW_ASSIGN(Rival rival,
                 Rival::start(options.python, kModelsScript, manifest));
  if (!options.json)
    print_text(fmt::format(
        "{}\n"
        "| model | batch | TensorFlow, ms | how | tagflow, ms | times faster "
        "|\n"
        "|---|--:|--:|---|--:|--:|\n",
        caption(rival, options.rounds)));
  for (size_t i = 0; i < entries.size(); ++i) {
    TAGFLOW_ASSIGN(const ModelRow row,
                   compare_model(entries[i], i, rival, options, folder.path()));
    print_row(entries[i], row, options.json);
    // Which the end of the program reports.
    if (!flush_stdout().ok()) return {};
  }
  return {};
}

}  // namespace

Failure compare_models(const CompareOptions& options) {
  Result<std::vector<ModelEntry>> entries = chosen(options);
  if (!entries.ok()) return usage_error(std::move(entries).status());
  Status status = compare_chosen(*entries, options);
  if (status.ok()) return {};
  if (status.code() == Code::kDataLoss)
    return run_time_error(std::move(status));
  return file_error(std::move(status));
}

}  // namespace tagflow::apps
