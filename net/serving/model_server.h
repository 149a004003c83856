// ModelServer: answers what clients ask of models.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/metrics/metric_text.h"
#include "net/serving/batcher.h"
#include "net/serving/figures.h"
#include "net/serving/model_store.h"
#include "net/serving/request.h"

namespace tagflow::net::serving {

// Knows nothing of sockets and formats. Requests are bounded by
// SessionOptions::max_active_runs and max_queued_runs of each model, or, where
// requests are batched, by BatchOptions: what is beyond is ResourceExhausted at
// once. Thread-safe.
class ModelServer {
 public:
  struct Options {
    ServableOptions servable;
    std::optional<BatchOptions> batching;  // none: each request runs alone
    std::chrono::milliseconds poll_interval{1000};
    // Whether clients may replace the models, by reload_config() of
    // PredictionService.
    bool allows_reloads = true;
    // As ModelStore::Options has it.
    std::function<void(const std::string& model, const VersionStatus&)>
        on_change = {};
  };

  // InvalidArgument for invalid options, ResourceExhausted without a thread.
  static Result<std::unique_ptr<ModelServer>> create(Options options);
  // Requests in a queue of the batcher are answered with Cancelled; those that
  // run are answered later. REQUIRES: no call of predict() runs
  ~ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  ModelStore& models() { return *store_; }
  const ModelStore& models() const { return *store_; }

  // Runs a signature. `done` is called once, on this thread or on another one,
  // and must not block. Errors of ModelStore::find(), Servable::signature() and
  // Servable::check(); DeadlineExceeded, Cancelled, ResourceExhausted, and
  // those of the graph. Rows of several requests are one run if the signature
  // has_rows, and there is batching.
  void predict(PredictRequest request, PredictDone done);

  bool allows_reloads() const { return allows_reloads_; }
  void write_figures(MetricText& text) const;

 private:
  struct Call;
  ModelServer() = default;
  void run(const std::shared_ptr<Call>& call);
  void run_in_batch(const std::shared_ptr<Call>& call, int64_t rows);

  bool allows_reloads_ = true;
  ServingFigures figures_;
  std::unique_ptr<ModelStore> store_;
  std::unique_ptr<Batcher> batcher_;  // null: no batching
};

}  // namespace tagflow::net::serving
