// The models of tests/apps/served, and requests that tests wait for.
#pragma once

#include <doctest/doctest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/serving/model_server.h"
#include "tests/source_path.h"
#include "tests/temp_folder.h"

namespace tagflow::net::serving {

inline std::string served(const std::string& model) {
  return source_path("tests/apps/served/" + model);
}

// A server that looks at folders when it is told to.
inline std::unique_ptr<ModelServer> serve(
    const std::vector<ModelConfig>& configs,
    ModelServer::Options options = {.poll_interval = {}}) {
  options.poll_interval = {};
  auto server = ModelServer::create(std::move(options));
  REQUIRE(server.ok());
  REQUIRE((*server)->models().set_configs(configs).ok());
  const Status loaded = (*server)->models().look();
  INFO(loaded.to_string());
  REQUIRE(loaded.ok());
  return *std::move(server);
}

inline std::unique_ptr<ModelServer> serve(const std::string& model) {
  return serve({{model, served(model)}});
}

// The answer to one request, which comes on another thread. Thread-safe.
template <class T>
class Awaited {
 public:
  void put(Result<T> value) {
    const std::lock_guard lock(mutex_);
    REQUIRE(!value_);
    value_ = std::move(value);
    changed_.notify_all();
  }
  Result<T> take() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(120),
                              [this] { return value_.has_value(); }));
    return *std::move(value_);
  }
  bool is_there() const {
    const std::lock_guard lock(mutex_);
    return value_.has_value();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<T>> value_;
};

// Starts a request.
inline std::shared_ptr<Awaited<PredictResponse>> start(ModelServer& server,
                                                       PredictRequest request) {
  const auto answer = std::make_shared<Awaited<PredictResponse>>();
  server.predict(std::move(request),
                 [answer](Result<PredictResponse> response) {
                   answer->put(std::move(response));
                 });
  return answer;
}

inline Result<PredictResponse> predict(ModelServer& server,
                                       PredictRequest request) {
  return start(server, std::move(request))->take();
}

inline PredictRequest request_for(const std::string& model, Tensors inputs) {
  PredictRequest request;
  request.model.name = model;
  request.inputs = std::move(inputs);
  return request;
}

inline bool says(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

}  // namespace tagflow::net::serving
