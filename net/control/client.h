// What a process that is not a member asks of the control plane of a cluster.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "graph/status.h"
#include "net/transfer/pairing.h"
#include "net/wire/control.h"

namespace tagflow::net {

// A way into a cluster.
struct ClusterAccess {
  Address any;         // of any member
  std::string name;    // of the cluster
  std::string secret;  // what its processes share
  // Of a master, by load_tls() in net/config/tls_files.h; null: without TLS.
  std::shared_ptr<Tls> tls = {};
};

struct MemberStatus {
  CatalogueEntry member;
  Status status;  // why its load is not known, if so
  Load load;
};

// The workers of the cluster, the directory first, each with a host. Errors of
// Connector; DeadlineExceeded or Unavailable if the directory does not answer.
// It tries again while the patience lasts and Retries has hope; each attempt
// blocks for a few seconds at most. Thread-safe.
Result<std::vector<CatalogueEntry>> members_of(
    const ClusterAccess& access, std::chrono::milliseconds patience = {});
// What each of them has to do. A member that does not answer is in its status.
Result<std::vector<MemberStatus>> status_of(const ClusterAccess& access);
// Asks the worker of that task, which listens at access.any, to leave the
// cluster, and returns when it has ended, which may take long: see
// Worker::drain(). Errors as above; FailedPrecondition if another task is
// there, or if the owner of the worker does not let it leave; Unavailable if it
// falls silent. Thread-safe.
Status drain_worker(const ClusterAccess& access, const Task& task);

}  // namespace tagflow::net
