// Two workers with taps before their ports, and their master.
#pragma once

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "tests/actors/program.h"
#include "tests/net/local_worker.h"
#include "tests/net/master/tap.h"

namespace tagflow::net {

inline constexpr char kHere[] = "/job:worker/task:0";
inline constexpr char kThere[] = "/job:worker/task:1";

struct Tapped {
  Tapped() {
    ClusterOptions options = local_cluster();
    for (uint32_t task = 0; task < 2; ++task) {
      workers.push_back(
          graph::testing::must(Worker::start(local_worker(task))));
      taps.emplace_back(workers.back()->port(), traffic);
      options.members.push_back(
          {{"worker", task}, {"localhost", taps.back().port()}});
    }
    master = graph::testing::must(Cluster::connect(std::move(options)));
  }

  std::unique_ptr<actors::Session> session(const graph::Graph& graph) const {
    actors::SessionOptions options;
    options.backend = master;
    return actors::make_session(options, graph);
  }

  TapTraffic traffic;
  std::list<Tap> taps;
  std::vector<std::unique_ptr<Worker>> workers;
  std::shared_ptr<Cluster> master;
};

}  // namespace tagflow::net
