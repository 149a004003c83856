// The common part of the programs' main() functions.
#pragma once

#include <string>

#include "apps/shared/program/exit_code.h"

namespace tagflow::apps {

// Sets up logging and the standard streams, runs `body`, flushes its output,
// and returns the result for main(). An exception, and output that cannot be
// written, are errors, reported on stderr. Does not return if a session was
// left (apps/shared/program/owned_session.h): the process ends.
//
// If SIGHUP, SIGINT or SIGTERM ends the process, it leaves no file under a
// temporary name. If anything that runs in it calls exit(), as an op library
// may, the exit code is that of a run-time error, whatever the caller wants.
int run_program(int argc, char** argv, ExitCode (*body)(int, char**));

// While it lives, a process that something ends by exit() blames this.
class EndingSuspect {
 public:
  explicit EndingSuspect(std::string what);
  EndingSuspect(const EndingSuspect&) = delete;
  EndingSuspect& operator=(const EndingSuspect&) = delete;
  ~EndingSuspect();
};

}  // namespace tagflow::apps
