// A process that this one started and talks to in lines.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
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

}  // namespace tagflow::apps
