// Workers of this machine, each a process of its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/shared/runs/end_signals.h"
#include "graph/status.h"
#include "net/config/cluster_file.h"

namespace tagflow::apps {

struct LocalWorkersOptions {
  int count = 1;
  std::string cluster;  // its name
  std::filesystem::path secret_file;
  net::TlsFiles tls;                   // of any process; empty: without
  std::string devices;                 // of each
  int threads = 0;                     // of each; 0: its share of the cores
  std::vector<std::string> arguments;  // further ones of "tagflow worker"
  double drain_time = 0;               // of each, in seconds
  // One that ends by itself, after it has listened, is followed by another
  // process at its address.
  bool respawns = false;
};

// The tasks 0 to N - 1 of the job "worker", which listen on loopback. They are
// processes of this program, which is the tagflow command, and are killed if it
// ends without ending them. Thread-compatible.
class LocalWorkers {
 public:
  // Returns when all of them listen. Unavailable naming the task if one ends
  // before; DeadlineExceeded if one is not ready after a minute; Cancelled if a
  // signal comes, if there are signals; ResourceExhausted if the system gives
  // no process. REQUIRES: the signals and the calling thread outlive it.
  static Result<std::unique_ptr<LocalWorkers>> start(
      const LocalWorkersOptions& options, const EndSignals* signals = nullptr);
  // Ends them by SIGTERM, and kills those that have not ended some seconds
  // after their drain time, or when another signal comes.
  ~LocalWorkers();
  LocalWorkers(const LocalWorkers&) = delete;
  LocalWorkers& operator=(const LocalWorkers&) = delete;

  // Where they listen.
  const std::vector<net::ClusterFile::Entry>& tasks() const { return tasks_; }

  // Waits until a signal comes, or no worker is left. Calls `on_end` with a
  // sentence about each that ends by itself, and whether another one follows.
  void wait(const std::function<void(const std::string&, bool)>& on_end);

 private:
  using Clock = std::chrono::steady_clock;
  struct Process {
    pid_t pid = -1;   // -1: it has ended
    int output = -1;  // its stdout
    std::string line;
    bool is_ready = false;
  };
  enum class Woken { kByOutput, kBySignal, kByTime };

  // A process that has ended.
  struct End {
    std::string sentence;
    size_t index = 0;
    bool was_ready = false;
  };

  LocalWorkers(const LocalWorkersOptions& options, const EndSignals* signals)
      : options_(options), signals_(signals) {}

  Status start_all();
  Status start_one(size_t index);
  // Waits for a change of some process. `ended` receives those that ended.
  Woken wait_for_change(Clock::time_point deadline, std::vector<End>* ended);
  void read_output(size_t index, std::vector<End>* ended);
  void take_line(size_t index);
  bool is_any_left() const;

  const LocalWorkersOptions options_;
  const EndSignals* const signals_;  // or null
  std::vector<Process> processes_;
  std::vector<net::ClusterFile::Entry> tasks_;  // as many
};

}  // namespace tagflow::apps
