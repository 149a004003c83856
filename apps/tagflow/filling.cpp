#include "apps/tagflow/filling.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "actors/session/queue_runners.h"
#include "graph/analysis/prune.h"

namespace tagflow::apps {
namespace {

// Each enqueue operation is cancelled; only kernels that cannot be interrupted
// delay it.
constexpr std::chrono::seconds kGrace{10};

// The nodes that a run needs. The run reports invalid names.
class Needed {
 public:
  explicit Needed(const graph::Graph& graph) : graph_(graph) {}

  void add_feed(const std::string& name) { add(name, feeds_); }
  void add_fetch(const std::string& name) { add(name, fetches_); }
  void add_target(const std::string& name) {
    if (graph::Node* node = graph_.find(name)) targets_.push_back(node);
  }
  graph::NodeSet nodes() const {
    return graph::prune(graph_, fetches_, targets_, feeds_);
  }

 private:
  void add(const std::string& name, std::vector<graph::Endpoint>& list) {
    const auto endpoint = graph_.endpoint(name);
    if (endpoint.ok()) list.push_back(*endpoint);
  }

  const graph::Graph& graph_;
  std::vector<graph::Endpoint> feeds_, fetches_;
  std::vector<graph::Node*> targets_;
};

std::vector<graph::QueueRunnerDef> needed_runners(const Prepared& prepared) {
  const graph::Graph& graph = prepared.session->graph();
  Needed needed(graph);
  for (const auto& [name, unused] : prepared.feeds) needed.add_feed(name);
  for (const std::string& name : prepared.fetches) needed.add_fetch(name);
  for (const std::string& name : prepared.targets) needed.add_target(name);
  std::vector<graph::QueueRunnerDef> chosen, others = prepared.queue_runners;
  // An enqueue operation may read the queues of others.
  for (bool more = !others.empty(); more;) {
    more = false;
    const graph::NodeSet nodes = needed.nodes();
    std::erase_if(others, [&](const graph::QueueRunnerDef& runner) {
      const graph::Node* queue = graph.find(runner.queue);
      if (queue == nullptr || !nodes.contains(*queue)) return false;
      for (const std::string& op : runner.enqueue_ops) needed.add_target(op);
      chosen.push_back(runner);
      return more = true;
    });
  }
  return chosen;
}

}  // namespace

Filling::Filling(const Prepared& prepared)
    : session_(*prepared.session), runners_(needed_runners(prepared)) {}

Status Filling::start() {
  return actors::start_queue_runners(session_, runners_, threads_);
}

Status Filling::end(Status status) {
  threads_.request_stop();
  Status reason = threads_.join(kGrace);
  if (reason.ok()) return status;
  if (status.code() == Code::kOutOfRange || status.code() == Code::kCancelled)
    return reason;
  spdlog::warn("{}", reason.to_string());
  return status;
}

}  // namespace tagflow::apps
