// What the programs print on, apart from data: logs and progress on stderr.
#pragma once

#include "apps/common/exit_code.h"

namespace tagflow::apps {

// spdlog's default logger writes "level: text" to stderr, in colour where
// that is a terminal and NO_COLOR is unset or empty. Called once, by main().
void set_up_logging();

// stderr is a terminal that can redraw a line.
bool is_terminal();
// is_terminal(), and the user has not asked for plain text (NO_COLOR).
bool wants_colour();

// Logs the error of a Failure, and returns its exit code.
ExitCode report(const Failure& failure);

}  // namespace tagflow::apps
