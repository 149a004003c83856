// Workload: cluster_service, an empty step on two workers by a client of a
// master service, beside the same by a master of this process. The service and
// all workers are processes of their own. Each measurement follows one of the
// other, which has workers of its own; `config` has that, and the ratio.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/building.h"
#include "apps/bench/local_cluster.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"
#include "apps/shared/io/file.h"
#include "apps/shared/io/private_folder.h"
#include "apps/shared/runs/child_process.h"
#include "net/config/secret_file.h"
#include "net/service/remote_master.h"

namespace tagflow::apps {
namespace {

constexpr int kSteps = 100;  // of a measurement

// A master service with workers of its own, and this process as its client.
class Service {
 public:
  static Result<Service> start(int threads) {
    TAGFLOW_ASSIGN(io::PrivateFolder folder, io::PrivateFolder::make());
    TAGFLOW_ASSIGN(const LocalWorkersOptions options,
                   bench_workers(folder.path(), kWorkers, threads));
    TAGFLOW_ASSIGN(auto workers, LocalWorkers::start(options));
    const std::filesystem::path file = folder.path() / "cluster.json";
    TAGFLOW_RETURN_IF_ERROR(io::write_file(
        file, net::format_cluster_file({.name = options.cluster,
                                        .secret_file = options.secret_file,
                                        .tasks = workers->tasks()})));
    // It has no end of its own: the shell ends it with this process.
    std::error_code failed;
    const std::filesystem::path self =
        std::filesystem::read_symlink("/proc/self/exe", failed);
    TAGFLOW_ASSIGN(
        ChildProcess master,
        ChildProcess::start({"sh", "-c", "\"$@\" & read line; kill $!; wait",
                             "sh", self.string(), "master", "--quiet",
                             "--cluster", file.string()}));
    TAGFLOW_ASSIGN(const std::string ready, master.read_line());
    constexpr std::string_view kReady = "ready: ";
    if (!ready.starts_with(kReady))
      return error(Code::kUnavailable, "[bench] the master says {:?}", ready);
    TAGFLOW_ASSIGN(net::Address address,
                   net::parse_address(ready.substr(kReady.size())));
    TAGFLOW_ASSIGN(std::string secret, net::read_secret(options.secret_file));
    TAGFLOW_ASSIGN(auto client,
                   net::RemoteMaster::connect({.address = std::move(address),
                                               .name = options.cluster,
                                               .secret = std::move(secret)}));
    return Service(std::move(workers), std::move(master), std::move(client));
  }

  const std::shared_ptr<net::RemoteMaster>& client() const { return client_; }

 private:
  Service(std::unique_ptr<LocalWorkers> workers, ChildProcess master,
          std::shared_ptr<net::RemoteMaster> client)
      : workers_(std::move(workers)),
        master_(std::move(master)),
        client_(std::move(client)) {}

  std::unique_ptr<LocalWorkers> workers_;  // destroyed last
  ChildProcess master_;
  std::shared_ptr<net::RemoteMaster> client_;
};

}  // namespace

Result<Measurement> measure_cluster_service(const BenchOptions& options) {
  TAGFLOW_ASSIGN(const BenchGraph graph, make_empty_on(kTasks));
  TAGFLOW_ASSIGN(const LocalCluster cluster,
                 LocalCluster::start(kWorkers, options.engine.workers));
  TAGFLOW_ASSIGN(const Service service, Service::start(options.engine.workers));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  session.backend = cluster.master();
  TAGFLOW_ASSIGN(PreparedRun embedded, PreparedRun::make(graph, session));
  session.backend = service.client();
  TAGFLOW_ASSIGN(PreparedRun served, PreparedRun::make(graph, session));
  session.backend = nullptr;
  TAGFLOW_ASSIGN(
      const Compared compared,
      compare_in_turns(
          options.repeats, [&] { return embedded.mean_seconds({}, kSteps); },
          [&] { return served.mean_seconds({}, kSteps); }));
  return Measurement{"cluster_service",
                     compared.second * 1e6,
                     "us",
                     {{"embedded", compared.first * 1e6},
                      {"ratio", compared.ratio},
                      {"repeats", options.repeats},
                      {"workers", options.engine.workers}}};
}

}  // namespace tagflow::apps
