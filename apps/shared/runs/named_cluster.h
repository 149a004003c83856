// What --cluster names: a cluster file, an address of a cluster, or a master
// service.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/shared/program/exit_code.h"
#include "apps/shared/runs/engine_options.h"
#include "net/config/cluster_file.h"
#include "net/control/client.h"

namespace tagflow::apps {

// One of the first two has the workers.
struct NamedCluster {
  std::string name;
  std::string secret;
  std::shared_ptr<net::Tls> tls;               // null: without
  std::vector<net::ClusterFile::Entry> tasks;  // of a file
  std::optional<net::Address> any;             // of any member
  std::optional<net::Address> service;         // "tagflow://HOST:PORT"

  net::ClusterAccess access(const net::Address& address) const {
    return {address, name, secret, tls};
  }
};

// Whether the text is "tagflow://...", a master service.
bool names_service(std::string_view cluster);

// Reads the file `cluster`. If there is none, and the text is HOST:PORT, it is
// the address of a member. Of that, and of a service, the certificate says the
// name of the cluster; without TLS it is the usual one. `secret_file` may be
// empty for a file that names one, and so may `tls`. Errors of the files; a
// usage error if no secret is named.
Failure read_named_cluster(const std::string& cluster,
                           const std::string& secret_file,
                           const TlsSwitches& tls, NamedCluster& named);

}  // namespace tagflow::apps
