#include "apps/shared/runs/tls_options.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace tagflow::apps {

void add_tls_options(CLI::App& app, TlsSwitches& switches, CLI::Option* cluster,
                     const std::string& group) {
  CLI::Option* const all[] = {
      app.add_option("--tls-ca", switches.ca,
                     "certificates of the authorities that the cluster trusts; "
                     "default: those that the cluster file names, and without "
                     "them no TLS"),
      app.add_option("--tls-cert", switches.certificate,
                     "the certificate of this process"),
      app.add_option("--tls-key", switches.key,
                     "its key: a file that only its owner can read")};
  for (CLI::Option* const option : all) {
    option->type_name("FILE");
    if (!group.empty()) option->group(group);
    if (cluster != nullptr) option->needs(cluster);
    for (CLI::Option* const other : all)
      if (other != option) option->needs(other);
  }
}

Failure read_tls(const TlsSwitches& switches, const net::TlsFiles& of_cluster,
                 const std::string& process, std::shared_ptr<net::Tls>& tls) {
  net::TlsFiles files{switches.ca, switches.certificate, switches.key};
  if (files.empty()) files = of_cluster;
  auto loaded = net::load_tls(files.of(process));
  if (!loaded.ok()) return file_error(std::move(loaded).status());
  tls = *std::move(loaded);
  return {};
}

}  // namespace tagflow::apps
