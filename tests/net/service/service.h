// A master service over the devices of the process that tests it, and what its
// clients ask for.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/file/graphdef.h"
#include "net/service/master_service.h"
#include "tests/actors/process_cases.h"

namespace tagflow::net {

inline std::unique_ptr<MasterService> service_of(
    const ServiceLimits& limits = {}) {
  return graph::testing::must(MasterService::create({{}, limits}));
}

inline ServiceRequest open_request(uint64_t session) {
  return {session, ServiceRequest::Open{.passes = "all",
                                        .max_call_depth = 100,
                                        .max_open_calls = 100,
                                        .max_nodes = 1000}};
}
inline ServiceRequest extend_request(uint64_t session,
                                     const graph::Graph& graph) {
  return {session, ServiceRequest::Extend{
                       graph::testing::must(graph::write_graphdef(graph))}};
}
inline ServiceRequest prepare_request(uint64_t session, uint64_t executable,
                                      std::vector<std::string> fetches,
                                      std::vector<std::string> targets = {},
                                      std::vector<std::string> feeds = {}) {
  return {session,
          ServiceRequest::Prepare{executable, std::move(feeds),
                                  std::move(fetches), std::move(targets)}};
}

// An answer that comes later, also after this has gone.
class Answered {
 public:
  actors::Done done() {
    return [to = state_](Result<std::vector<Tensor>> answer,
                         const actors::RunStats&) {
      const std::lock_guard lock(to->mutex);
      to->answer = std::move(answer);
      to->changed.notify_all();
    };
  }
  Result<std::vector<Tensor>> wait() {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->answer.has_value(); });
    return *state_->answer;
  }
  bool is_there() {
    const std::lock_guard lock(state_->mutex);
    return state_->answer.has_value();
  }

 private:
  struct State {
    std::mutex mutex;  // guards the below
    std::condition_variable changed;
    std::optional<Result<std::vector<Tensor>>> answer;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A client with one session, which has the graph.
struct ServedClient {
  ServedClient(MasterService& service, const graph::Graph& graph)
      : client(graph::testing::must(service.admit())) {
    graph::testing::must(client->perform(open_request(1)));
    graph::testing::must(client->perform(extend_request(1, graph)));
  }
  uint64_t prepare(std::vector<std::string> fetches,
                   std::vector<std::string> targets = {},
                   std::vector<std::string> feeds = {}) {
    graph::testing::must(client->perform(prepare_request(
        1, ++last, std::move(fetches), std::move(targets), std::move(feeds))));
    return last;
  }
  // Prepares, runs, and waits.
  Result<std::vector<Tensor>> run(std::vector<std::string> fetches,
                                  std::vector<std::string> targets = {}) {
    Answered answered;
    const uint64_t executable = prepare(std::move(fetches), std::move(targets));
    TAGFLOW_RETURN_IF_ERROR(
        client->run(executable, executable, {}, answered.done()));
    return answered.wait();
  }

  std::unique_ptr<MasterService::Client> client;
  uint64_t last = 1;
};

}  // namespace tagflow::net
