// The common part of the programs' main() functions.
#pragma once

#include "apps/shared/program/exit_code.h"

namespace tagflow::apps {

// Sets up logging and the standard streams, runs `body`, flushes its output,
// and returns the result for main(). An exception, and output that cannot be
// written, are errors, reported on stderr. Does not return if a session was
// left (apps/shared/program/owned_session.h): the process ends.
int run_program(int argc, char** argv, ExitCode (*body)(int, char**));

}  // namespace tagflow::apps
