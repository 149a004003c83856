// Workers that are processes, so that a test can kill and stop them.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "net/master/cluster.h"

namespace tagflow::net {

// "TASK PORT DESCRIPTOR": what the process is told by its environment.
inline constexpr char kWorkerVariable[] = "TAGFLOW_TEST_WORKER";
inline constexpr char kWorkerCase[] = "a worker for other test cases";
inline constexpr char kProcessSecret[] = "a secret of these processes";

// Runs the test case kWorkerCase of this program, which listens at that port
// (0: one that is free), as /job:worker/task:N. Ends with its owner.
class WorkerProcess {
 public:
  explicit WorkerProcess(uint32_t task, uint16_t port = 0) {
    std::array<int, 2> pipe;
    REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
    const std::string filter = std::string("--test-case=") + kWorkerCase;
    std::array<const char*, 4> arguments = {"worker", filter.c_str(),
                                            "--no-skip", nullptr};
    const std::string told = fmt::format("{} {} {}", task, port, pipe[1]);
    REQUIRE(::setenv(kWorkerVariable, told.c_str(), 1) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::fcntl(pipe[1], F_SETFD, 0);
      ::execv("/proc/self/exe", const_cast<char**>(arguments.data()));
      ::_exit(1);
    }
    ::unsetenv(kWorkerVariable);
    ::close(pipe[1]);
    REQUIRE(process_ > 0);
    const bool is_ready =
        ::read(pipe[0], &port_, sizeof(port_)) == ssize_t(sizeof(port_));
    ::close(pipe[0]);
    REQUIRE(is_ready);
  }
  ~WorkerProcess() { kill(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  uint16_t port() const { return port_; }
  void signal(int number) const { ::kill(process_, number); }
  void kill() {
    if (process_ <= 0) return;
    signal(SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
  uint16_t port_ = 0;
};

// So many workers, and their master in this process.
struct WorkerProcesses {
  explicit WorkerProcesses(uint32_t count, bool tolerates_torn_state = false) {
    options.name = "processes";
    options.secret = kProcessSecret;
    options.tolerates_torn_state = tolerates_torn_state;
    for (uint32_t task = 0; task < count; ++task) {
      workers.push_back(std::make_unique<WorkerProcess>(task));
      options.members.push_back(
          {{"worker", task}, {"localhost", workers.back()->port()}});
    }
    auto connected = Cluster::connect(options);
    INFO(connected.status().to_string());
    REQUIRE(connected.ok());
    cluster = std::move(*connected);
  }
  // A process that was killed is followed by another one.
  void restart(uint32_t task) {
    const uint16_t port = workers[task]->port();
    workers[task] = nullptr;
    workers[task] = std::make_unique<WorkerProcess>(task, port);
  }

  ClusterOptions options;
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  std::shared_ptr<Cluster> cluster;
};

}  // namespace tagflow::net
