#include "python/src/target.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "net/config/cluster_file.h"
#include "net/config/secret_file.h"
#include "net/config/tls_files.h"
#include "net/link/tls.h"
#include "net/service/remote_master.h"

namespace tagflow::python {
namespace {

constexpr std::string_view kService = "tagflow://";

}  // namespace

Result<std::shared_ptr<actors::Backend>> connect(const Target& target) {
  if (target.address.empty()) return std::shared_ptr<actors::Backend>();
  if (!target.address.starts_with(kService))
    return invalid_argument(
        "[target] \"{}\" is not tagflow://HOST:PORT, the address of a `tagflow "
        "master`",
        target.address);
  TAGFLOW_ASSIGN(net::Address address,
                 net::parse_address(target.address.substr(kService.size())));
  if (address.host.empty() || address.port == 0)
    return invalid_argument("[target] \"{}\" has no {}", target.address,
                            address.port == 0 ? "port" : "host");
  if (target.secret_file.empty())
    return invalid_argument(
        "[target] secret_file is missing: the file with the secret that the "
        "processes of the cluster share");
  net::RemoteMasterOptions options;
  options.address = std::move(address);
  options.name = net::ClusterFile().name;
  options.patience = std::chrono::seconds(2);
  TAGFLOW_ASSIGN(options.secret, net::read_secret(target.secret_file));
  const net::TlsFiles files = {target.tls_ca, target.tls_cert, target.tls_key};
  if (!files.empty()) {
    TAGFLOW_ASSIGN(options.tls, net::load_tls(files));
    // The certificate says which cluster is meant.
    if (auto own = options.tls->cluster_of({}, 0))
      options.name = *std::move(own);
  }
  TAGFLOW_ASSIGN(auto master, net::RemoteMaster::connect(std::move(options)));
  return std::shared_ptr<actors::Backend>(std::move(master));
}

}  // namespace tagflow::python
