// Texts of errors, as users see them.
#pragma once

#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow {

// The limits of a text, in bytes.
inline constexpr size_t kLongestWord = 400;
inline constexpr size_t kLongestMessage = 4000;

// The text, shorter if it is very long: a name or a value without spaces has
// kLongestWord bytes at most, and the whole kLongestMessage, each a little more
// for the words that say how much was left out of its middle. So the start of a
// message stays, which says where the error is, and so does the end, which says
// what is wrong. No character of UTF-8 is cut. Status::to_string() and the logs
// of the programs use this; Status::message() is the whole text. Thread-safe.
std::string shorten_message(std::string_view text);

// The text, or what is left of it without its middle: about `limit` bytes, and
// the words that say how much was left out. Of these bytes, `share_of_start`
// stays at the start, and the rest at the end. No character of UTF-8 is cut.
// Thread-safe.
std::string cut_middle(std::string_view text, size_t limit,
                       double share_of_start);

// Whether the text has the path as a word, in quotes or before a colon, or the
// path of a file below or beside it ("PREFIX.index"). Thread-safe.
bool mentions_file(std::string_view text, std::string_view path);

// The status with "PATH: " before its message, unless that mentions it. It is
// for errors of what a file contains, found where nobody knows the file. No
// effect on success. Thread-safe.
Status name_file(Status status, std::string_view path);

}  // namespace tagflow
