// The control plane by connections with TLS.
#include <doctest/doctest.h>

#include "net/control/client.h"
#include "tests/net/control/cluster_of.h"
#include "tests/net/link/test_certificates.h"

namespace tagflow::net {
namespace {

WorkerOptions certified(uint32_t task, Address join = {}) {
  WorkerOptions options = joining(task, std::move(join));
  options.tls = worker_tls(task);
  return options;
}

ClusterAccess by_master(Address address) {
  ClusterAccess access = access_by(std::move(address));
  access.tls = master_tls();
  return access;
}

size_t count_members(const Address& address) {
  const auto found = members_of(by_master(address));
  return found.ok() ? found->size() : 0;
}

// Why a directory with certificates does not take the worker.
Status refusal_of(WorkerOptions options) {
  FrameInbox<Status> refusals;
  options.on_refused = [&](const Status& reason) { refusals.put(reason); };
  const Joined refused = start_worker(std::move(options));
  Status reason = refusals.take();
  INFO(reason.to_string());
  return reason;
}

}  // namespace

TEST_CASE("workers with certificates join, and are missed when they end") {
  const Joined directory = start_worker(certified(0));
  Joined first = start_worker(certified(1, directory.address()));
  const Joined second = start_worker(certified(2, first.address()));
  wait_until([&] { return count_members(second.address()) == 3; });
  const auto status = status_of(by_master(first.address()));
  REQUIRE(status.ok());
  for (const MemberStatus& each : *status) CHECK(each.status.ok());
  first.worker.reset();
  wait_until([&] { return count_members(directory.address()) == 2; });
}

TEST_CASE("a directory with certificates says whom it does not take, and why") {
  const Joined directory = start_worker(certified(0));
  CHECK(mentions(refusal_of(joining(1, directory.address())),
                 "the peer speaks with TLS, and this process without"));
  CHECK(directory.warnings->mention(
      "a stranger at 127.0.0.1: the peer speaks without TLS"));
  WorkerOptions other = joining(1, directory.address());
  other.tls = tls_of(certificate_of("worker", 1),
                     make_authority("other", std::chrono::hours(1)).value());
  CHECK(mentions(refusal_of(other), "was issued by another authority"));
  other.tls = worker_tls(2);
  CHECK(
      mentions(Worker::start(other).status(),
               "is for tagflow://test/worker/2, not tagflow://test/worker/1"));
  CHECK(mentions(members_of(access_by(directory.address())).status(),
                 "the peer speaks with TLS, and this process without"));
  CHECK(count_members(directory.address()) == 1);
}

}  // namespace tagflow::net
