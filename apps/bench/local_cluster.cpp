#include "apps/bench/local_cluster.h"

#include <chrono>
#include <string>
#include <utility>

#include "apps/shared/io/private_folder.h"
#include "net/config/certificate_files.h"
#include "net/config/secret_file.h"

namespace tagflow::apps {

Result<LocalWorkersOptions> bench_workers(const std::filesystem::path& folder,
                                          int count, int threads) {
  LocalWorkersOptions workers;
  workers.count = count;
  workers.cluster = "bench";
  workers.secret_file = folder / "secret";
  workers.threads = threads;
  workers.arguments = {"--quiet"};
  TAGFLOW_RETURN_IF_ERROR(net::write_new_secret(workers.secret_file));
  return workers;
}

Result<LocalCluster> LocalCluster::start(
    int count, int threads, bool tls,
    const std::filesystem::path& checkpoints) {
  TAGFLOW_ASSIGN(const io::PrivateFolder folder, io::PrivateFolder::make());
  TAGFLOW_ASSIGN(LocalWorkersOptions workers,
                 bench_workers(folder.path(), count, threads));
  if (!checkpoints.empty())
    workers.arguments.insert(workers.arguments.end(),
                             {"--checkpoints", checkpoints.string()});
  net::ClusterOptions options{.name = workers.cluster};
  TAGFLOW_ASSIGN(options.secret, net::read_secret(workers.secret_file));
  if (tls) {
    net::CertificateFiles files{.folder = folder.path() / "certificates",
                                .cluster = workers.cluster,
                                .lasts = std::chrono::hours(24)};
    for (int i = 0; i < count; ++i)
      files.processes.push_back({{"worker", uint32_t(i)}, {}});
    TAGFLOW_RETURN_IF_ERROR(net::write_certificates(files).status());
    workers.tls = net::certificates_in(files.folder);
    TAGFLOW_ASSIGN(options.tls,
                   net::load_tls(workers.tls.of(net::process_name({}))));
  }
  LocalCluster cluster;
  TAGFLOW_ASSIGN(cluster.workers_, LocalWorkers::start(workers));
  for (const auto& [task, address, devices] : cluster.workers_->tasks())
    options.members.push_back({task, address});
  TAGFLOW_ASSIGN(cluster.master_, net::Cluster::connect(std::move(options)));
  return cluster;
}

}  // namespace tagflow::apps
