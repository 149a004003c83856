// Runs the models of `tagflow bench models` from the files that its script
// wrote.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "actors/session/session.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

struct ModelEntry {
  std::string_view name;  // in the script
  std::string_view what;
  int batch;
  bool trains = false;
};

// The input and the result of a frozen graph.
struct FrozenNames {
  std::string feed, fetch;
};

inline constexpr double kModelTolerance = 1e-4;
// The number of losses of a train step that are compared.
inline constexpr int kComparedLosses = 20;

// Runs a model once, always with the same input, and returns its result.
using ModelRun = std::function<Result<Tensor>()>;

// A model with its own sessions. Thread-compatible.
class OwnModel {
 public:
  // Returns errors of the files and of the sessions.
  static Result<OwnModel> make(const ModelEntry& entry,
                               const std::filesystem::path& folder,
                               const FrozenNames& names,
                               const actors::SessionOptions& options);

  // The largest difference of its results from TensorFlow's, relative to their
  // largest element; DataLoss above kModelTolerance. REQUIRES: called before
  // other runs, since train steps are compared from the saved weights on.
  Result<double> difference() const;

  // Seconds of a run, the median of `repeats`.
  Result<double> seconds(int repeats) const;
  // As seconds(), with variables instead of constants. REQUIRES: !entry.trains
  Result<double> unfrozen_seconds(int repeats) const;

 private:
  explicit OwnModel(const ModelEntry& entry) : entry_(entry) {}
  Result<double> difference_of(const ModelRun& run,
                               std::string_view what) const;
  Result<Tensor> results_of(const ModelRun& run) const;

  ModelEntry entry_;
  Tensor expected_;
  ModelRun run_, unfrozen_;  // unfrozen_ is empty if the model is trained
};

}  // namespace tagflow::apps
