// What the main() functions of the programs have in common.
#pragma once

#include "apps/common/exit_code.h"

namespace tagflow::apps {

// Sets up logging and the standard streams, runs `body`, makes sure that what
// it printed is written, and returns what main() returns. An exception, and
// output that cannot be written, are errors, said on stderr. Does not return
// where a session was left (apps/common/owned_session.h): the process ends.
int run_program(int argc, char** argv, ExitCode (*body)(int, char**));

}  // namespace tagflow::apps
