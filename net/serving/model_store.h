// ModelStore: the models of a server, each in the versions that its folder has.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/status.h"
#include "net/serving/model_config.h"
#include "net/serving/request.h"
#include "net/serving/servable.h"

namespace tagflow::net::serving {

// A version of a model:
//
//   kStart      it is to be served
//   kLoading
//   kAvailable  requests get it
//   kUnloading  no new request gets it; those that run go on
//   kEnd        it has gone, or its load has failed, as the status says
//
// The numbers are those of TensorFlow Serving. A load that failed is tried
// again when the model's files have changed, as when they were still being
// copied. Versions that are available never change: new files need a new one.
struct VersionStatus {
  enum class State : uint8_t {
    kStart = 10,
    kLoading = 20,
    kAvailable = 30,
    kUnloading = 40,
    kEnd = 50,
  };

  int64_t version = 0;
  State state = State::kStart;
  Status status;
};
const char* state_name(VersionStatus::State state);

// A thread of it looks at the folders again and again. A version that its
// policy no longer chooses is unloaded when one that it chooses is available;
// so a model never is without a version because a new one loads, or fails to.
// If a folder has no versions any more, the old ones stay. Thread-safe.
class ModelStore {
 public:
  using Loader = std::function<Result<std::shared_ptr<const Servable>>(
      const std::string& model, int64_t version, const std::string& folder,
      const actors::CancelToken& stop)>;
  struct Options {
    Loader loader;
    // From one look to the next; zero: it looks when it is told to.
    std::chrono::milliseconds poll_interval{1000};
    // Is told what has changed, on the thread that looks. May be empty.
    std::function<void(const std::string& model, const VersionStatus&)>
        on_change;
  };

  // ResourceExhausted without a thread.
  static Result<std::unique_ptr<ModelStore>> create(Options options);
  // As stop(). Waits for a load that runs.
  ~ModelStore();
  ModelStore(const ModelStore&) = delete;
  ModelStore& operator=(const ModelStore&) = delete;

  // The models from now on. Versions of others are unloaded by the next look.
  // Errors of check_configs(), after which nothing has changed.
  Status set_configs(const std::vector<ModelConfig>& configs);
  // Looks at all folders once, and loads and unloads. Returns the first error
  // of a version, or NotFound of a model without any; Cancelled after stop().
  Status look();
  // Cancels the load that runs, and loads nothing from now on. Versions that
  // are available stay.
  void stop();
  // Waits until no load runs; false if that takes longer.
  bool wait_until_idle(std::chrono::milliseconds time);

  // The version of the spec. NotFound if there is no such model or version, or
  // no version of it is available; Unavailable while it loads; InvalidArgument
  // for an unknown label.
  Result<std::shared_ptr<const Servable>> find(const ModelSpec& spec) const;
  // The versions of the model, or that of the spec; the newest first. NotFound
  // if there is none, InvalidArgument for an unknown label.
  Result<std::vector<VersionStatus>> statuses(const ModelSpec& spec) const;
  // Unavailable, with the first of its reasons, unless each model has a version
  // that is available.
  Status ready() const;
  std::vector<std::string> names() const;

 private:
  struct State;
  explicit ModelStore(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace tagflow::net::serving
