// What the programs print on, apart from data: logs and progress on stderr.
#pragma once

#include <string>
#include <string_view>

#include "apps/common/exit_code.h"

namespace tagflow::apps {

// spdlog's default logger writes "level: text" to stderr, in colour where
// that is a terminal and NO_COLOR is unset or empty. Called once, by main().
void set_up_logging();

// The text with control characters but line ends and tabs as escapes, "\u001b":
// what a file says must not command the terminal.
std::string printable(std::string_view text);
// Writes data to stdout so. Logs need no care: the logger does it.
void print_text(std::string_view text);

// stderr is a terminal that can redraw a line.
bool is_terminal();
// is_terminal(), and the user has not asked for plain text (NO_COLOR).
bool wants_colour();

// Logs the error of a Failure, and returns its exit code.
ExitCode report(const Failure& failure);

}  // namespace tagflow::apps
