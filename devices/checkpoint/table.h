// LevelDB tables, of which a bundle's index is one: sorted pairs of texts.
//
//   block, checksum | block, checksum | ... | footer of 48 bytes
//
// The footer says where the block of blocks is, whose values say where the
// others are. A block is a list of (bytes shared with the key before, bytes of
// the key that follow, bytes of the value: three varints; the key's bytes; the
// value's), and an array of places to start from, which we have no use for: a
// table is always read as a whole.
//
// Written by LevelDB, but read here: LevelDB trusts the sizes in a file, and
// allocates, or overflows, what a hostile one says.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/status.h"

namespace tagflow::checkpoint {

using TableEntry = std::pair<std::string, std::string>;

// Whether the bytes end like those of a table. Thread-safe.
bool is_table(std::string_view bytes);

// All entries, by ascending key. DataLoss where the bytes are no table, a
// checksum is wrong, or the keys are not ascending. Takes memory of a small
// multiple of the bytes. `name` is the file's, for errors. Thread-safe.
Result<std::vector<TableEntry>> parse_table(std::string_view bytes,
                                            std::string_view name);

// REQUIRES: the keys are ascending. Thread-safe.
Result<std::string> format_table(const std::vector<TableEntry>& entries);

}  // namespace tagflow::checkpoint
