#include "apps/bench/local_cluster.h"

#include <charconv>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "apps/shared/program/terminal.h"
#include "net/worker/worker.h"

namespace tagflow::apps {
namespace {

constexpr char kCluster[] = "bench";

std::string make_secret() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(),
                     random());
}

Result<uint16_t> port_of(const std::string& line) {
  uint16_t port = 0;
  const char* const end = line.data() + line.size();
  const auto [at, code] = std::from_chars(line.data(), end, port);
  if (code == std::errc() && at == end && port != 0) return port;
  return error(Code::kDataLoss, "[bench] a worker answered \"{}\"", line);
}

}  // namespace

Result<LocalCluster> LocalCluster::start(int count, int threads) {
  LocalCluster cluster;
  net::ClusterOptions options{.name = kCluster, .secret = make_secret()};
  for (int task = 0; task < count; ++task) {
    TAGFLOW_ASSIGN(ChildProcess worker,
                   ChildProcess::start({"/proc/self/exe", "bench", "worker"}));
    TAGFLOW_RETURN_IF_ERROR(worker.write_line(
        fmt::format("{} {} {}", task, threads, options.secret)));
    cluster.workers_.push_back(std::move(worker));
  }
  for (int task = 0; task < count; ++task) {
    TAGFLOW_ASSIGN(const std::string line,
                   cluster.workers_[size_t(task)].read_line());
    TAGFLOW_ASSIGN(const uint16_t port, port_of(line));
    options.members.push_back(
        {{"worker", uint32_t(task)}, {"localhost", port}});
  }
  TAGFLOW_ASSIGN(cluster.master_, net::Cluster::connect(std::move(options)));
  return cluster;
}

Status serve_local_worker() {
  net::WorkerOptions options;
  options.cluster = kCluster;
  options.task.job = "worker";
  std::cin >> options.task.index >> options.workers >> options.secret;
  if (!std::cin)
    return invalid_argument("[bench] a worker is started by a benchmark");
  // The benchmark reports what goes wrong.
  options.on_warning = [](const std::string&) {};
  TAGFLOW_ASSIGN(const auto worker, net::Worker::start(std::move(options)));
  print_text(fmt::format("{}\n", worker->port()));
  TAGFLOW_RETURN_IF_ERROR(flush_stdout());
  std::cin.ignore(std::numeric_limits<std::streamsize>::max(),
                  std::char_traits<char>::eof());
  return {};
}

}  // namespace tagflow::apps
