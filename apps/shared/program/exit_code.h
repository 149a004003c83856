// The exit codes of the programs.
#pragma once

#include "graph/status.h"

namespace tagflow::apps {

enum class ExitCode : int {
  kOk = 0,
  kRunTimeError = 1,  // the graph is wrong, or its run failed
  kUsage = 2,         // the command line is wrong
  kMissingData = 3,   // a named file does not exist
  kPeerLost = 4,      // a process of the cluster is gone
  kDeadlock = 5,      // the step could make no progress
  // 128 + the signal's number, as in a shell: a signal ended the program
};

inline ExitCode exit_code_of_signal(int signal) {
  return ExitCode(128 + signal);
}

// The code of an error that is not about the command line. NotFound is a
// run-time error, since it is rarely about a file.
inline ExitCode exit_code_of(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return ExitCode::kOk;
    case Code::kDeadlock:
      return ExitCode::kDeadlock;
    case Code::kUnavailable:
      return ExitCode::kPeerLost;
    default:
      return ExitCode::kRunTimeError;
  }
}

// The code of an error in reading a file: NotFound means that it does not
// exist.
inline ExitCode exit_code_of_file(const Status& status) {
  return status.code() == Code::kNotFound ? ExitCode::kMissingData
                                          : exit_code_of(status);
}

// An error on its way to main().
struct Failure {
  ExitCode exit_code = ExitCode::kOk;
  Status status;
};

inline Failure usage_error(Status status) {
  return {ExitCode::kUsage, std::move(status)};
}
inline Failure run_time_error(Status status) {
  const ExitCode code = exit_code_of(status);
  return {code, std::move(status)};
}
inline Failure file_error(Status status) {
  const ExitCode code = exit_code_of_file(status);
  return {code, std::move(status)};
}

}  // namespace tagflow::apps
