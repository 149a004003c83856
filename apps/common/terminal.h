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
// The same, and line ends and tabs, too: for a name in a list of lines.
std::string printable_name(std::string_view text);
// How wide a column of a list is, of which the longest text has so many bytes.
// What is longer makes its own line longer, and not every other.
size_t column_width(size_t longest);
// Writes data to stdout so. Logs need no care: the logger does it. What goes
// wrong flush_stdout() says.
void print_text(std::string_view text);
// Writes what is still buffered. DataLoss, with the cause, where anything that
// was printed so far could not be written.
Status flush_stdout();

// Sees to it that no file that is opened takes the place of a standard stream
// that was closed: else data would be written there. What is printed to a
// closed stdout is an error. Called once, by main().
void claim_standard_streams();

// stderr is a terminal that can redraw a line.
bool is_terminal();
// is_terminal(), and the user has not asked for plain text (NO_COLOR).
bool wants_colour();

// Logs the error of a Failure, and returns its exit code.
ExitCode report(const Failure& failure);

}  // namespace tagflow::apps
