// RestApi: TensorFlow Serving's REST interface.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

#include "net/link/http_server.h"
#include "net/serving/prediction_service.h"
#include "net/serving/task_pool.h"

namespace tagflow::net::serving {

// Answers
//   POST /v1/models/NAME[/versions/N|/labels/L]:predict|:classify|:regress
//   GET  /v1/models/NAME[/versions/N|/labels/L][/metadata]
// in JSON; an error is {"error": "..."} with the code of HTTP that TensorFlow
// Serving gives. If a client goes, what it has asked for ends. Thread-safe.
class RestApi {
 public:
  struct Options {
    // For a request, from its last byte on.
    std::chrono::milliseconds time{30'000};
    // Longer bodies are read on the pool, and more elements written there.
    size_t most_at_once = 16384;
  };

  // Both outlive it.
  RestApi(ModelServer& server, TaskPool& pool, Options options)
      : server_(server), service_(server), pool_(pool), options_(options) {}
  // Waits for all requests. REQUIRES: handle() is not called any more
  ~RestApi();
  RestApi(const RestApi&) = delete;
  RestApi& operator=(const RestApi&) = delete;

  // As HttpServer::RequestHandler.
  void handle(HttpServer::Request request, HttpServer::Answer answer);
  // Waits until no request runs; false if that takes longer.
  bool wait_until_idle(std::chrono::milliseconds time);

 private:
  struct Call;
  void predict(const std::shared_ptr<Call>& call);
  void classify(const std::shared_ptr<Call>& call);
  void regress(const std::shared_ptr<Call>& call);

  ModelServer& server_;
  PredictionService service_;
  TaskPool& pool_;
  const Options options_;
  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  size_t calls_ = 0;
};

// The code of HTTP for an error.
unsigned http_status_of(Code code);

}  // namespace tagflow::net::serving
