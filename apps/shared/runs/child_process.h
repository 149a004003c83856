// A child process, and an exchange of lines with it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::apps {

// Its stdin and stdout are pipes to this process; it inherits stderr.
// Thread-compatible.
class ChildProcess {
 public:
  // Searches PATH for the program if its name has no slash. Returns NotFound
  // if it cannot be started. REQUIRES: !command.empty()
  static Result<ChildProcess> start(const std::vector<std::string>& command);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  // Closes the pipes and waits for the end.
  ~ChildProcess();

  // Sends a line. Returns Aborted if the process does not read any more.
  Status write_line(const std::string& line);
  // The next line, without its newline. Returns Aborted at the end.
  Result<std::string> read_line();
  // Closes stdin and waits. The exit status, or 128 + the signal's number.
  int wait();

 private:
  ChildProcess(pid_t pid, std::FILE* input, std::FILE* output)
      : pid_(pid), input_(input), output_(output) {}

  pid_t pid_;
  std::FILE* input_;   // its stdin
  std::FILE* output_;  // its stdout
};

// Runs a program on `input`, and returns its stdout; it inherits stderr.
// Returns NotFound if it cannot be started, DeadlineExceeded if it takes
// longer than `limit` (it is killed then), ResourceExhausted if it writes
// more than 256 MiB, and Unknown if its exit status is not 0.
// REQUIRES: !command.empty()
Result<std::string> run_filter(const std::vector<std::string>& command,
                               std::string_view input,
                               std::chrono::milliseconds limit);

}  // namespace tagflow::apps
