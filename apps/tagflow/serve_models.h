// tagflow serve MODEL_DIR...: models for clients of TensorFlow Serving.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/shared/program/exit_code.h"
#include "apps/tagflow/serve.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

struct ServeModels {
  std::vector<std::string> folders;
  std::string name;        // of the only folder's model; empty: the folder's
  std::string config;      // a file; empty: none
  std::string rest, grpc;  // where they listen; empty: nowhere
  std::string batching;    // a file; empty: the defaults
  bool has_batching = false;
  bool allows_file_ops = false;
  bool refuses_reloads = false;
  double poll = 1;           // seconds from one look at the folders to the next
  double request_time = 30;  // seconds for a request by REST
  int active_runs = 0;       // of a model; 0: twice the workers
  int queued_runs = 1000;    // of a model
  size_t connections = 1000;  // by REST
  size_t max_body = 64;       // MiB of a request by REST
  size_t max_bytes = 512;     // MiB of all of them

  bool is_wanted() const { return !folders.empty() || !config.empty(); }
};

// Declares MODEL_DIR and the switches of models. `models` must outlive the
// parsing.
void add_model_options(CLI::App& app, ServeModels& models);

// Serves until a signal ends it.
Failure serve_models(const ServeOptions& options, const ServeModels& models);

}  // namespace tagflow::apps
