#include "apps/shared/runs/named_cluster.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "apps/shared/runs/tls_options.h"
#include "net/config/secret_file.h"
#include "net/link/tls.h"

namespace tagflow::apps {
namespace {

constexpr std::string_view kService = "tagflow://";

}  // namespace

bool names_service(std::string_view cluster) {
  return cluster.starts_with(kService);
}

Failure read_named_cluster(const std::string& cluster,
                           const std::string& secret_file,
                           const TlsSwitches& tls, NamedCluster& named) {
  net::ClusterFile file;
  std::error_code ignored;
  if (names_service(cluster)) {
    auto address = net::parse_address(cluster.substr(kService.size()));
    if (address.ok() && (address->host.empty() || address->port == 0))
      address = invalid_argument("\"{}\" has no {}", cluster,
                                 address->port == 0 ? "port" : "host");
    if (!address.ok())
      return usage_error(
          std::move(address).status().with_prefix("[--cluster] "));
    named.service = *std::move(address);
  } else if (auto address = net::parse_address(cluster);
             address.ok() && !address->host.empty() && address->port != 0 &&
             !std::filesystem::exists(cluster, ignored)) {
    named.any = *std::move(address);
  } else {
    auto read = net::read_cluster_file(cluster);
    if (read.status().code() == Code::kNotFound)
      return file_error(error(Code::kNotFound,
                              "[--cluster] {}; as an address it would be "
                              "HOST:PORT",
                              read.status().message()));
    if (!read.ok())
      return file_error(std::move(read).status().with_prefix("[--cluster] "));
    file = *std::move(read);
  }
  if (!secret_file.empty()) file.secret_file = secret_file;
  if (file.secret_file.empty())
    return usage_error(invalid_argument(
        "[--cluster] \"{}\" names no \"secret_file\": add --secret-file",
        cluster));
  auto secret = net::read_secret(file.secret_file);
  if (!secret.ok()) return file_error(std::move(secret).status());
  named.name = std::move(file.name);
  named.secret = *std::move(secret);
  named.tasks = std::move(file.tasks);
  Failure failure = read_tls(tls, file.tls, net::process_name({}), named.tls);
  // Where no file says it, the certificate says which cluster is meant.
  if (named.tls != nullptr && (named.any || named.service))
    if (auto own = named.tls->cluster_of({}, 0)) named.name = *std::move(own);
  return failure;
}

}  // namespace tagflow::apps
