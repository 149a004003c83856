// A process of a schedule.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "graph/status.h"

namespace tagflow::chaos {

struct ProcessOptions {
  std::vector<std::string> command;  // the first one is the program's path
  int network = -1;                  // the descriptor of a namespace; -1: none
  // How many seconds its monotonic clock is ahead, for which it gets a time
  // namespace of its own.
  int64_t ahead = 0;
  std::filesystem::path folder;  // that it works in
};

// Its streams are pipes to this process, which does not block on them. It is
// killed with this process. Thread-compatible; made by the main thread.
class Process {
 public:
  // NotFound if it cannot be started.
  static Result<Process> start(const ProcessOptions& options);
  Process() = default;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  // Kills it.
  ~Process();

  bool is_running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int output() const { return streams_[0].descriptor; }
  int errors() const { return streams_[1].descriptor; }
  void signal(int number) const;
  // Calls the functions with each line that has come.
  void read_lines(const std::function<void(const std::string&)>& on_output,
                  const std::function<void(const std::string&)>& on_error);
  // Whether it has ended. `code` receives the exit code, or 128 + a signal's
  // number. What it has written can still be read.
  bool has_ended(int& code);
  // Kills it, and waits.
  void kill();

 private:
  struct Stream {
    int descriptor = -1;
    std::string rest;  // without its end of line
  };
  void read_stream(Stream& stream,
                   const std::function<void(const std::string&)>& on_line);
  void close_streams();

  pid_t pid_ = -1;
  Stream streams_[2];
};

}  // namespace tagflow::chaos
