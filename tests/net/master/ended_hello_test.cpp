// A worker that ends in any phase of a hello is away, and may come back. One
// with another secret is refused for good.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "net/transfer/identity.h"
#include "tests/actors/process_cases.h"
#include "tests/net/link/test_certificates.h"
#include "tests/net/local_worker.h"
#include "tests/net/master/front.h"

namespace tagflow::net {
namespace {

using graph::testing::contains;
using graph::testing::must;

constexpr char kTask[] = "/job:worker/task:0";

// A worker behind a front, with TLS or without.
struct Fronted {
  explicit Fronted(bool has_tls)
      : tls(has_tls ? worker_tls(0) : nullptr),
        front(must(make_identity(Role::kWorker, {"worker", 0}, kTestCluster,
                                 kTestSecret, tls))) {
    if (has_tls) options.tls = master_tls();
    options.members = {{{"worker", 0}, {"localhost", front.port()}}};
    start_worker(kTestSecret);
  }
  void start_worker(const std::string& secret) {
    WorkerOptions of_worker = local_worker(0);
    of_worker.secret = secret;
    of_worker.tls = tls;
    worker.reset();
    worker = must(Worker::start(std::move(of_worker)));
    front.pass_to(worker->port());
  }

  const std::shared_ptr<Tls> tls;
  Front front;
  std::unique_ptr<Worker> worker;
  ClusterOptions options = local_cluster();
};

// A busy machine may end a connection between its hello and its first message.
Result<std::shared_ptr<Cluster>> connect_patiently(ClusterOptions options) {
  options.patience = kNever;
  const auto end = std::chrono::steady_clock::now() + kNever;
  for (;;) {
    auto cluster = Cluster::connect(options);
    if (cluster.status().code() != Code::kUnavailable ||
        contains(cluster.status().message(), "ended the hello") ||
        std::chrono::steady_clock::now() >= end)
      return cluster;
  }
}

// A session on the worker's device.
struct Small {
  explicit Small(const ClusterOptions& options) {
    const graph::Scope s = p.s.with_device(kTask);
    graph::ops::identity(s.named("y"), graph::ops::constant(s, 1));
    must(p.s.status());
    actors::SessionOptions of_session;
    of_session.backend = must(connect_patiently(options));
    session = actors::make_session(of_session, p.graph);
  }
  Status run() const {
    return session->run({}, {"y"}, {}, actors::within_a_minute()).status();
  }

  actors::Program p;
  std::unique_ptr<actors::Session> session;
};

// Runs until it ends so. What comes before must be that the worker is away.
template <class F>
Status run_until(const Small& small, F is_so) {
  const auto end = std::chrono::steady_clock::now() + kNever;
  for (;;) {
    const Status status = small.run();
    if (is_so(status)) return status;
    INFO(status.to_string());
    REQUIRE((status.ok() || status.code() == Code::kUnavailable));
    REQUIRE(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool is_success(const Status& status) { return status.ok(); }
// Of a session that has looked for what follows the lost worker.
bool has_no_other(const Status& status) {
  return contains(status.message(), "its last process");
}

// Calls it for each phase of the hello of the first and the second connection,
// with TLS and without.
template <class F>
void in_each_phase(F&& f) {
  for (const bool has_tls : {false, true}) {
    CAPTURE(has_tls);
    Fronted cluster(has_tls);
    for (const HelloPhase phase : kHelloPhases)
      for (const int passed : {0, 1}) {
        CAPTURE(int(phase));
        CAPTURE(passed);
        f(cluster, phase, passed);
      }
  }
}

}  // namespace

TEST_CASE("a worker that ends in its first hello is away") {
  in_each_phase([](Fronted& cluster, HelloPhase phase, int passed) {
    cluster.front.end_in(phase, passed);
    const Status status = Cluster::connect(cluster.options).status();
    INFO(status.to_string());
    CHECK(status.code() == Code::kUnavailable);
    CHECK(contains(status.message(), kTask));
  });
}

TEST_CASE("a worker that ends in some hellos is found by a patient master") {
  in_each_phase([](Fronted& cluster, HelloPhase phase, int passed) {
    cluster.front.end_in(phase, passed, 5);
    const Status status = connect_patiently(cluster.options).status();
    CHECK_MESSAGE(status.ok(), status.to_string());
  });
}

TEST_CASE("a worker that ends in the hello of a later join is away till then") {
  for (const bool has_tls : {false, true}) {
    Fronted cluster(has_tls);
    const Small small(cluster.options);
    must(run_until(small, is_success));
    for (const HelloPhase phase : kHelloPhases) {
      CAPTURE(has_tls);
      CAPTURE(int(phase));
      cluster.front.end_in(phase, 0);
      cluster.front.cut();
      const Status away = run_until(small, has_no_other);
      CHECK(away.code() == Code::kUnavailable);
      CHECK(contains(away.message(), kTask));
      cluster.front.pass_to(cluster.worker->port());
      must(run_until(small, is_success));
    }
  }
}

TEST_CASE("another secret is the error of the first join and of a later one") {
  const auto check = [](const Status& status) {
    INFO(status.to_string());
    CHECK(status.code() == Code::kUnauthenticated);
    CHECK(contains(status.message(), kTask));
    CHECK(contains(status.message(), "as it does if the secrets differ"));
  };
  for (const bool has_tls : {false, true}) {
    CAPTURE(has_tls);
    Fronted cluster(has_tls);
    ClusterOptions other = cluster.options;
    other.secret = "another secret";
    other.patience = kNever;  // which it does not need
    check(Cluster::connect(other).status());
    const Small small(cluster.options);
    must(run_until(small, is_success));
    cluster.start_worker("another secret");
    cluster.front.cut();
    check(run_until(small, [](const Status& status) {
      return has_no_other(status) && status.code() != Code::kUnavailable;
    }));
  }
}

}  // namespace tagflow::net
