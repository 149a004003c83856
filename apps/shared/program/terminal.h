// Helpers for the standard streams and the terminal.
#pragma once

#include <string>
#include <string_view>

#include "apps/shared/program/exit_code.h"

namespace tagflow::apps {

// spdlog's default logger writes "level: text" to stderr, in colour if
// that is a terminal and NO_COLOR is unset or empty. Called once, by main().
void set_up_logging();

// The text with control characters, except newlines and tabs, as escapes
// ("\u001b"), and so bytes that are not UTF-8 ("\xff"): text from a file must
// not control the terminal.
std::string printable(std::string_view text);
// As printable(), with newlines and tabs escaped, too: for a name in a list of
// lines.
std::string printable_name(std::string_view text);
// As printable(), for an error or a warning, which names may be part of: it is
// shortened, and each of its lines after the first is indented, since newlines
// that two spaces do not follow are escaped. So no name looks like a message of
// its own.
std::string printable_message(std::string_view text);
// The width of a column whose longest text has `longest` bytes. It has a limit;
// a longer text extends only its own line.
size_t column_width(size_t longest);
// Writes printable(text) to stdout. The logger does the same for logs.
// flush_stdout() returns errors.
void print_text(std::string_view text);
// Writes buffered output. Returns DataLoss, with the cause, if any earlier
// output could not be written.
Status flush_stdout();

// Occupies the descriptors of closed standard streams, so that no opened file
// gets one and receives output. Printing to a closed stdout is an error. Called
// once, by main().
void claim_standard_streams();

// stderr is a terminal that can redraw a line.
bool is_terminal();
// is_terminal(), and the user has not asked for plain text (NO_COLOR).
bool wants_colour();

// Logs the error of a Failure, and returns its exit code.
ExitCode report(const Failure& failure);

}  // namespace tagflow::apps
