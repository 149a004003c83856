#include "apps/bench/models.h"

#include <spdlog/spdlog.h>

#include <optional>

#include "apps/bench/models_script.h"
#include "apps/bench/own_model.h"
#include "apps/bench/rival.h"
#include "apps/bench/stopwatch.h"
#include "apps/shared/io/file.h"
#include "apps/shared/program/terminal.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

constexpr ModelEntry kModels[] = {
    {"mobilenet", "MobileNetV2, 224 x 224 x 3", 1},
    {"resnet", "ResNet50, 224 x 224 x 3", 1},
    {"efficientnet", "EfficientNetB0, 224 x 224 x 3", 1},
    {"lstm", "LSTM of 128 units, 100 x 64", 32},
    {"bigru", "BiGRU of 128 units, 100 x 64", 32},
    {"transformer", "Transformer encoder, 4 layers, 64 x 256", 8},
    {"mlp_train", "train step: 784-512-10, SGD", 128, true},
    {"lstm_train", "train step: LSTM of 128 units, 28 x 28, Adam", 32, true},
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
                                   {"losses", kComparedLosses},
                                   {"models", std::move(list)}};
  const fs::path path = folder / "manifest.json";
  TAGFLOW_RETURN_IF_ERROR(io::write_file(path, manifest.dump()));
  return path;
}

// TensorFlow's answer for a model.
struct Answer {
  FrozenNames names;  // empty if the model is trained
  std::string how;
  double seconds = 0;
};

Result<Answer> ask(Rival& rival, size_t index, bool trains) {
  TAGFLOW_ASSIGN(const std::string line, rival.ask(index));
  const auto json = nlohmann::json::parse(line, nullptr, false);
  try {
    Answer answer{{}, json.at("how"), json.at("seconds")};
    if (!trains) answer.names = {json.at("feed"), json.at("fetch")};
    return answer;
  } catch (const nlohmann::json::exception&) {
    return error(Code::kDataLoss, "[bench] TensorFlow answered \"{}\"", line);
  }
}

struct ModelRow {
  double theirs = 0, ours = 0;  // milliseconds
  double ratio = 0;             // the factor by which ours is faster
  double difference = 0;
  // Time with variables over that with constants, for models that are not
  // trained.
  std::optional<double> unfrozen;
  std::string how;
};

Result<ModelRow> compare_model(const ModelEntry& entry, size_t index,
                               Rival& rival, const CompareOptions& options,
                               const fs::path& folder) {
  TAGFLOW_ASSIGN(const Answer made, ask(rival, index, entry.trains));
  TAGFLOW_ASSIGN(const actors::SessionOptions session,
                 to_session_options(options.bench.engine));
  TAGFLOW_ASSIGN(const OwnModel own,
                 OwnModel::make(entry, folder, made.names, session));
  ModelRow row;
  row.how = made.how;
  TAGFLOW_ASSIGN(row.difference, own.difference());
  const int repeats = options.bench.repeats;
  std::vector<double> theirs, ours, ratios, unfrozen;
  for (int round = 0; round < options.rounds; ++round) {
    TAGFLOW_ASSIGN(const Answer answer, ask(rival, index, entry.trains));
    TAGFLOW_ASSIGN(const double seconds, own.seconds(repeats));
    theirs.push_back(answer.seconds * 1e3);
    ours.push_back(seconds * 1e3);
    ratios.push_back(answer.seconds / seconds);
    if (entry.trains) continue;
    TAGFLOW_ASSIGN(const double with_variables, own.unfrozen_seconds(repeats));
    unfrozen.push_back(with_variables / seconds);
  }
  row.theirs = median(std::move(theirs));
  row.ours = median(std::move(ours));
  row.ratio = median(std::move(ratios));
  if (!unfrozen.empty()) row.unfrozen = median(std::move(unfrozen));
  return row;
}

void print_row(const ModelEntry& entry, const ModelRow& row, bool json) {
  if (json) {
    nlohmann::json line = {
        {"name", entry.name},   {"what", entry.what},
        {"batch", entry.batch}, {"tensorflow", row.theirs},
        {"how", row.how},       {"tagflow", row.ours},
        {"ratio", row.ratio},   {"difference", row.difference},
        {"unit", "ms"}};
    if (row.unfrozen) line["unfrozen"] = *row.unfrozen;
    print_text(line.dump() + "\n");
  } else {
    print_text(fmt::format(
        "| {} | {} | {} | {} | {} | {:.3g} | {} |\n", entry.what, entry.batch,
        four_digits(row.theirs), row.how, four_digits(row.ours), row.ratio,
        row.unfrozen ? fmt::format("{:.3g}", *row.unfrozen) : "-"));
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
        "| unfrozen / frozen |\n"
        "|---|--:|--:|---|--:|--:|--:|\n",
        caption(rival, options.rounds)));
  for (size_t i = 0; i < entries.size(); ++i) {
    TAGFLOW_ASSIGN(const ModelRow row,
                   compare_model(entries[i], i, rival, options, folder.path()));
    print_row(entries[i], row, options.json);
    // The end of the program reports errors of stdout.
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
