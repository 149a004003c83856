#include "apps/bench/own_model.h"

#include <algorithm>
#include <memory>

#include "actors/checkpoint/saved_model.h"
#include "apps/bench/largest_difference.h"
#include "apps/bench/stopwatch.h"
#include "apps/shared/io/npy.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

// Enough runs until a signature has its frozen form, whose compilation is not
// part of a run.
constexpr int kUncounted = 8;

Result<ModelRun> frozen_run(const fs::path& file, const FrozenNames& names,
                            const Tensor& feed,
                            const actors::SessionOptions& options) {
  BenchGraph graph;
  TAGFLOW_ASSIGN(graph.graph, graph::load_graph(file));
  graph.feeds = {names.feed};
  graph.fetches = {names.fetch};
  TAGFLOW_ASSIGN(PreparedRun made, PreparedRun::make(graph, options));
  const auto run = std::make_shared<PreparedRun>(std::move(made));
  return ModelRun([run, feed]() -> Result<Tensor> {
    TAGFLOW_ASSIGN(const std::vector<Tensor> results, run->results({&feed, 1}));
    return results[0];
  });
}

// For a SavedModel, whose variables live in its session.
Result<ModelRun> signature_run(const fs::path& folder,
                               const std::string& signature,
                               const actors::SavedModel::Tensors& inputs,
                               const std::string& output,
                               const actors::SessionOptions& options) {
  TAGFLOW_ASSIGN(auto loaded, actors::SavedModel::load(folder, options));
  const std::shared_ptr<actors::SavedModel> model = std::move(loaded);
  return ModelRun([=]() -> Result<Tensor> {
    TAGFLOW_ASSIGN(const auto results, model->run(signature, inputs));
    const auto result = results.find(output);
    if (result != results.end()) return result->second;
    return error(Code::kDataLoss, "[bench] signature \"{}\" has no \"{}\"",
                 signature, output);
  });
}

Result<double> median_seconds(const ModelRun& run, int repeats) {
  return median_of(repeats,
                   [&] { return seconds_of([&] { return run().status(); }); });
}

}  // namespace

Result<OwnModel> OwnModel::make(const ModelEntry& entry, const fs::path& folder,
                                const FrozenNames& names,
                                const actors::SessionOptions& options) {
  const auto file = [&](std::string_view ending) {
    return folder / fmt::format("{}{}", entry.name, ending);
  };
  OwnModel own(entry);
  if (entry.trains) {
    TAGFLOW_ASSIGN(const Tensor x, io::read_npy(file(".x.npy")));
    TAGFLOW_ASSIGN(const Tensor y, io::read_npy(file(".y.npy")));
    TAGFLOW_ASSIGN(own.expected_, io::read_npy(file(".losses.npy")));
    TAGFLOW_ASSIGN(
        own.run_, signature_run(file(""), "train", {{"x", x}, {"y", y}}, "loss",
                                options));
    return own;
  }
  TAGFLOW_ASSIGN(const Tensor x, io::read_npy(file(".feed.npy")));
  TAGFLOW_ASSIGN(own.expected_, io::read_npy(file(".fetch.npy")));
  TAGFLOW_ASSIGN(own.run_, frozen_run(file(".pb"), names, x, options));
  TAGFLOW_ASSIGN(own.unfrozen_,
                 signature_run(file(""), "forward", {{"x", x}}, "y", options));
  return own;
}

// The result of a run, or the losses of the first ones.
Result<Tensor> OwnModel::results_of(const ModelRun& run) const {
  if (!entry_.trains) return run();
  Tensor losses = Tensor::make(DataType::kFloat, {kComparedLosses});
  for (float& loss : losses.mutable_flat<float>()) {
    TAGFLOW_ASSIGN(const Tensor result, run());
    TAGFLOW_ASSIGN(loss, result.item<float>());
  }
  return losses;
}

Result<double> OwnModel::difference_of(const ModelRun& run,
                                       std::string_view what) const {
  TAGFLOW_ASSIGN(const Tensor actual, results_of(run));
  TAGFLOW_ASSIGN(const double off, largest_difference(actual, expected_));
  if (off <= kModelTolerance) return off;
  return error(Code::kDataLoss,
               "[bench] {}: the result differs from TensorFlow's by {:.2g} of "
               "its largest element, more than {:.2g}",
               what, off, kModelTolerance);
}

Result<double> OwnModel::difference() const {
  TAGFLOW_ASSIGN(const double most, difference_of(run_, entry_.name));
  if (!unfrozen_) return most;
  for (int i = 0; i < kUncounted; ++i)
    TAGFLOW_RETURN_IF_ERROR(unfrozen_().status());
  TAGFLOW_ASSIGN(
      const double other,
      difference_of(unfrozen_, fmt::format("{}, not frozen", entry_.name)));
  return std::max(most, other);
}

Result<double> OwnModel::seconds(int repeats) const {
  return median_seconds(run_, repeats);
}

Result<double> OwnModel::unfrozen_seconds(int repeats) const {
  return median_seconds(unfrozen_, repeats);
}

}  // namespace tagflow::apps
