// A process that this one started and talks to in lines.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::apps {

// Its stdin and stdout are pipes to us; its stderr is ours. Thread-compatible.
class ChildProcess {
 public:
  // Looks for the program in PATH where its name has no slash. NotFound where
  // it cannot be started. REQUIRES: !command.empty()
  static Result<ChildProcess> start(const std::vector<std::string>& command);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  // Closes the pipes and waits for the end.
  ~ChildProcess();

  // Sends a line; Unavailable where nobody reads it any more.
  Status write_line(const std::string& line);
  // The next line, without its end; Unavailable where there is none.
  Result<std::string> read_line();
  // Closes stdin and waits. The exit status, or 128 + the signal's number.
  int wait();

 private:
  ChildProcess(pid_t pid, std::FILE* input, std::FILE* output)
      : pid_(pid), input_(input), output_(output) {}

  pid_t pid_;
  std::FILE* input_;   // what it reads
  std::FILE* output_;  // what it writes
};

// Runs a program on `input`, and gives what it writes to stdout; its stderr is
// ours. NotFound where it cannot be started, DeadlineExceeded where it takes
// longer than `limit` (it is ended then), ResourceExhausted where it writes
// more than 256 MiB, Unknown where its exit status is not 0.
// REQUIRES: !command.empty()
Result<std::string> run_filter(const std::vector<std::string>& command,
                               std::string_view input,
                               std::chrono::milliseconds limit);

}  // namespace tagflow::apps
