// Processes that know the secret of a cluster, and keep to no rule.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "net/transfer/channel.h"
#include "net/transfer/identity.h"
#include "tests/net/local_worker.h"
#include "tests/net/wire/random_frame.h"

namespace tagflow::net {
namespace {

// Each time that it loses its master, the worker is a new incarnation.
constexpr std::chrono::seconds kPatience{60};

Pairing::Pair connect_as(Role role, const IoThreads& threads, uint16_t port) {
  const Task task{role == Role::kMaster ? "master" : "a_worker", 0};
  const auto identity = make_identity(role, task, kTestCluster, kTestSecret);
  REQUIRE(identity.ok());
  auto pair =
      connect_pair(*threads.bulk, {"localhost", port}, *identity, 0, kPatience);
  INFO(pair.status().to_string());
  REQUIRE(pair.ok());
  return std::move(*pair);
}

}  // namespace

TEST_CASE("a worker outlives whatever a master or a worker sends it") {
  Role role = Role::kMaster;
  SUBCASE("a master") {}
  SUBCASE("a worker") { role = Role::kWorker; }
  const auto threads = IoThreads::start();
  REQUIRE(threads.ok());
  const auto worker = std::move(*Worker::start(local_worker(1)));
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    RandomPeer peer(connect_as(role, *threads, worker->port()), role, seed);
    bool goes_on = true;
    for (int i = 0; i < 200 && goes_on; ++i)
      goes_on = i % 4 == 0 ? peer.send_bulk() : peer.send_small();
  }
  // It serves the next master.
  const auto identity =
      make_identity(Role::kMaster, {"master", 0}, kTestCluster, kTestSecret);
  REQUIRE(identity.ok());
  ClusterOptions options = local_cluster();
  options.members = {{{"worker", 1}, {"localhost", worker->port()}}};
  options.patience = kPatience;
  const auto cluster = Cluster::connect(std::move(options));
  INFO(cluster.status().to_string());
  REQUIRE(cluster.ok());
  CHECK((*cluster)->devices().size() == 1);
}

}  // namespace tagflow::net
