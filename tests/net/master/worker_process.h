// Workers that are processes, so that a test can kill and stop them.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/master/cluster.h"
#include "tests/net/master/network.h"

namespace tagflow::net {

// "TASK PORT HOST DESCRIPTOR": what the process is told by its environment.
inline constexpr char kWorkerVariable[] = "TAGFLOW_TEST_WORKER";
inline constexpr char kWorkerCase[] = "a worker for other test cases";
inline constexpr char kProcessSecret[] = "a secret of these processes";

// Runs the test case kWorkerCase of this program, which listens at that port
// (0: one that is free), as /job:worker/task:N; on loopback, or at host N of a
// network. Its clock is so many seconds ahead, for which it must be root's.
// Ends with its owner.
class WorkerProcess {
 public:
  explicit WorkerProcess(uint32_t task, uint16_t port = 0,
                         const Network* network = nullptr, int ahead = 0) {
    std::array<int, 2> pipe;
    REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
    const std::string filter = std::string("--test-case=") + kWorkerCase;
    std::array<const char*, 4> arguments = {"worker", filter.c_str(),
                                            "--no-skip", nullptr};
    const std::string told = fmt::format(
        "{} {} {} {}", task, port,
        network == nullptr ? "localhost" : network->address(task), pipe[1]);
    REQUIRE(::setenv(kWorkerVariable, told.c_str(), 1) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::fcntl(pipe[1], F_SETFD, 0);
      if (network != nullptr &&
          ::setns(network->descriptor(task), CLONE_NEWNET) != 0)
        ::_exit(1);
      if (ahead != 0 && !shift_clock(ahead)) ::_exit(1);
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

  pid_t process() const { return process_; }
  uint16_t port() const { return port_; }
  void signal(int number) const { ::kill(process_, number); }
  void kill() {
    if (process_ <= 0) return;
    signal(SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

  // Whether this process is in a time namespace of its own now, whose clock is
  // so many seconds ahead. For a process that was forked: it takes no memory.
  static bool shift_clock(int ahead) {
    if (::unshare(CLONE_NEWTIME) != 0) return false;
    std::array<char, 32> text;
    const auto written =
        fmt::format_to_n(text.data(), text.size(), "monotonic {} 0", ahead);
    const std::string_view offset(text.data(), written.size);
    const int offsets = ::open("/proc/self/timens_offsets", O_WRONLY);
    const int space = ::open("/proc/self/ns/time_for_children", O_RDONLY);
    return offsets >= 0 && space >= 0 &&
           ::write(offsets, offset.data(), offset.size()) ==
               ssize_t(offset.size()) &&
           ::setns(space, CLONE_NEWTIME) == 0;
  }

 private:
  pid_t process_ = 0;
  uint16_t port_ = 0;
};

// So many workers, and their master in this process; on loopback, or at the
// hosts of a network, of which the master has the last one. The clock of task N
// is N * `ahead` seconds ahead.
struct WorkerProcesses {
  explicit WorkerProcesses(uint32_t count, const Network* hosts = nullptr,
                           int ahead = 0)
      : network(hosts) {
    options.name = "processes";
    options.secret = kProcessSecret;
    for (uint32_t task = 0; task < count; ++task) {
      workers.push_back(
          std::make_unique<WorkerProcess>(task, 0, network, int(task) * ahead));
      options.members.push_back({{"worker", task}, address(task)});
    }
    std::optional<Result<std::shared_ptr<Cluster>>> connected;
    at_master([&] { connected = Cluster::connect(options); });
    INFO(connected->status().to_string());
    REQUIRE(connected->ok());
    cluster = std::move(**connected);
  }
  Address address(uint32_t task) const {
    return {network == nullptr ? "localhost" : network->address(task),
            workers[task]->port()};
  }
  // Calls it on a thread of the master's host. REQUIRES: f does not throw
  void at_master(const std::function<void()>& f) const {
    if (network == nullptr) return f();
    network->call(uint32_t(options.members.size()), f);
  }
  // A process that was killed is followed by another one.
  void restart(uint32_t task) {
    const uint16_t port = workers[task]->port();
    workers[task] = nullptr;
    workers[task] = std::make_unique<WorkerProcess>(task, port, network);
  }

  const Network* const network;
  ClusterOptions options;
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  std::shared_ptr<Cluster> cluster;
};

}  // namespace tagflow::net
