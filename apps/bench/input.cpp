#include "apps/bench/input.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/bench/input_script.h"
#include "apps/bench/rival.h"
#include "apps/bench/stopwatch.h"
#include "apps/shared/io/file.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/engine_options.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

struct Pipeline {
  const char* name;  // in the script, in this order
  const char* what;
};
constexpr Pipeline kPipelines[] = {
    {"records", "TFRecords of 784 bytes, parsed in batches of 128"},
    {"jpegs", "JPEG pictures, decoded and resized to 224 x 224"},
};

struct Answer {
  double seconds = 0, result = 0, records = 0;
};

Result<Answer> ask(Rival& rival, size_t index) {
  TAGFLOW_ASSIGN(const std::string line, rival.ask(index));
  const auto json = nlohmann::json::parse(line, nullptr, false);
  try {
    return Answer{json.at("seconds"), json.at("result"), json.at("records")};
  } catch (const nlohmann::json::exception&) {
    return error(Code::kDataLoss, "[bench] TensorFlow answered \"{}\"", line);
  }
}

// A number of any type.
double number_of(const Tensor& value) {
  return value.dtype() == DataType::kFloat
             ? double(value.scalar_value<float>())
             : double(value.scalar_value<int64_t>());
}

struct Row {
  double theirs = 0, ours = 0;  // thousands of records in a second
  double ratio = 0;
};

Result<Row> compare_pipeline(size_t index, Rival& rival,
                             const CompareOptions& options,
                             const fs::path& folder) {
  const std::string name = kPipelines[index].name;
  TAGFLOW_ASSIGN(const graph::Graph graph,
                 graph::load_graph(folder / (name + ".pb")));
  TAGFLOW_ASSIGN(actors::SessionOptions session_options,
                 to_session_options(options.bench.engine));
  TAGFLOW_ASSIGN(const auto session,
                 actors::Session::create(std::move(session_options)));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  TAGFLOW_ASSIGN(const actors::Callable call,
                 session->make_callable({}, {"x:0"}));
  TAGFLOW_ASSIGN(const std::vector<Tensor> first, call());
  std::vector<double> theirs, ours, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    TAGFLOW_ASSIGN(const Answer answer, ask(rival, index));
    const double result = number_of(first[0]);
    // Pictures may differ in the last bit of their numbers.
    if (std::abs(result - answer.result) > 1e-5 * std::abs(answer.result))
      return error(Code::kDataLoss,
                   "[bench] {}: the result is {}, and in TensorFlow {}", name,
                   result, answer.result);
    std::vector<double> seconds;
    for (int i = 0; i < options.bench.repeats; ++i) {
      const Clock::time_point begin = Clock::now();
      TAGFLOW_RETURN_IF_ERROR(call().status());
      seconds.push_back(
          std::chrono::duration<double>(Clock::now() - begin).count());
    }
    const double own = median(std::move(seconds));
    theirs.push_back(answer.records / answer.seconds / 1e3);
    ours.push_back(answer.records / own / 1e3);
    ratios.push_back(answer.seconds / own);
  }
  return Row{median(std::move(theirs)), median(std::move(ours)),
             median(std::move(ratios))};
}

Status compare_all(const CompareOptions& options) {
  TAGFLOW_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  const nlohmann::json manifest = {{"folder", folder.path().string()},
                                   {"repeats", options.bench.repeats}};
  const fs::path path = folder.path() / "manifest.json";
  TAGFLOW_RETURN_IF_ERROR(io::write_file(path, manifest.dump()));
  TAGFLOW_ASSIGN(Rival rival, Rival::start(options.python, kInputScript, path));
  if (!options.json)
    print_text(
        fmt::format("{}\n"
                    "| input | TensorFlow, 1000/s | tagflow, 1000/s | "
                    "times faster |\n|---|--:|--:|--:|\n",
                    caption(rival, options.rounds)));
  for (size_t i = 0; i < std::size(kPipelines); ++i) {
    const Pipeline& pipeline = kPipelines[i];
    if (!options.only.empty() && options.only != pipeline.name) continue;
    TAGFLOW_ASSIGN(const Row row,
                   compare_pipeline(i, rival, options, folder.path()));
    print_text(options.json
                   ? nlohmann::json{{"name", pipeline.name},
                                    {"what", pipeline.what},
                                    {"tensorflow", row.theirs},
                                    {"tagflow", row.ours},
                                    {"ratio", row.ratio},
                                    {"unit", "1000/s"}}
                             .dump() +
                         "\n"
                   : fmt::format("| {} | {} | {} | {:.3g} |\n", pipeline.what,
                                 four_digits(row.theirs), four_digits(row.ours),
                                 row.ratio));
    // The end of the program reports errors of stdout.
    if (!flush_stdout().ok()) return {};
  }
  return {};
}

}  // namespace

Failure compare_input(const CompareOptions& options) {
  std::string names;
  bool is_known = options.only.empty();
  for (const Pipeline& pipeline : kPipelines) {
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", pipeline.name);
    is_known = is_known || options.only == pipeline.name;
  }
  if (!is_known)
    return usage_error(invalid_argument(
        "[bench] no input is named \"{}\"; there is {}", options.only, names));
  Status status = compare_all(options);
  if (status.ok()) return {};
  if (status.code() == Code::kDataLoss)
    return run_time_error(std::move(status));
  return file_error(std::move(status));
}

}  // namespace tagflow::apps
