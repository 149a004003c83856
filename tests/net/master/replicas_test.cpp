// Training by several workers of this process, through sockets.
#include "autodiff/train/replicas.h"

#include <doctest/doctest.h>

#include "tests/autodiff/train/slow_replica.h"
#include "tests/net/local_worker.h"

namespace tagflow::net {
namespace {

using namespace tagflow::autodiff;           // NOLINT: for tests
using namespace tagflow::autodiff::testing;  // NOLINT
using namespace tagflow::graph;              // NOLINT

// Workers, and their master, which goes first.
struct Workers {
  explicit Workers(uint32_t count) {
    ClusterOptions cluster = local_cluster();
    for (uint32_t task = 0; task < count; ++task) {
      auto worker = Worker::start(local_worker(task));
      REQUIRE_MESSAGE(worker.ok(), worker.status().to_string());
      workers.push_back(*std::move(worker));
      cluster.members.push_back(
          {{"worker", task}, {"localhost", workers.back()->port()}});
      devices.push_back(fmt::format("/job:worker/task:{}", task));
    }
    auto connected = Cluster::connect(cluster);
    REQUIRE_MESSAGE(connected.ok(), connected.status().to_string());
    options.backend = *std::move(connected);
  }

  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::string> devices;
  actors::SessionOptions options;
};

// The variables after three steps.
std::vector<Tensor> train(const std::vector<std::string>& devices,
                          const std::vector<std::string>& servers,
                          const actors::SessionOptions& options) {
  Graph graph;
  const Scope s(graph);
  const VariableScope vars;
  const Replicas replicas(s, vars,
                          {.devices = devices,
                           .servers = servers,
                           .all_reduce = {.ring_bytes = 60}},
                          part_of_embedding(devices.size()));
  replicas.minimize(s.named("step"), [](const VariableScope& own) {
    return optimizers::adam(own, 0.05);
  });
  replicas.initialize(s.named("init"));
  std::vector<std::string> names;
  for (const ScopedVariable& variable : vars.trainable_variables())
    names.push_back(variable.read(s).name());
  DeviceSession session(s, options);
  session.run("init");
  for (int i = 0; i < 3; ++i) session.run("step");
  return session.run(names, {});
}

}  // namespace

TEST_CASE("replicas over workers take the steps of replicas in one process") {
  for (const uint32_t count : {2, 3}) {
    CAPTURE(count);
    actors::SessionOptions here;
    here.devices = fmt::format("cpu:{}", count);
    for (const size_t servers : {0, 1, 2}) {
      CAPTURE(servers);
      Workers workers(count);
      const auto& names = workers.devices;
      const auto one_process = cpus(int(count));
      const auto found =
          train(names, {names.begin(), names.begin() + ptrdiff_t(servers)},
                workers.options);
      const auto wanted =
          train(one_process,
                {one_process.begin(), one_process.begin() + ptrdiff_t(servers)},
                here);
      REQUIRE(found.size() == 5);
      for (size_t i = 0; i < found.size(); ++i)
        CHECK(identical(found[i], wanted[i]));
    }
  }
}

TEST_CASE("an asynchronous replica of another worker applies its gradients") {
  Workers workers(2);
  check_asynchronous(workers.devices, workers.options);
}

TEST_CASE("late gradients of a backup replica of another worker are dropped") {
  Workers workers(3);
  check_backup(workers.devices, workers.options);
}

}  // namespace tagflow::net
