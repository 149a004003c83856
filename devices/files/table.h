// LevelDB tables, such as a bundle's index: sorted pairs of texts.
//
//   block, checksum | block, checksum | ... | footer of 48 bytes
//
// The footer gives the place of the block of blocks, whose values give the
// places of the others. A block is a list of (bytes shared with the key before,
// bytes of the key that follow, bytes of the value: three varints; the key's
// bytes; the value's), and an array of restart points, which we do not use: a
// table is always read as a whole.
//
// Written by LevelDB, but read here: LevelDB trusts the sizes in a file, so a
// hostile file can make it allocate too much, or overflow.
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

// All entries, in ascending order of keys. DataLoss if the bytes are not a
// table, a checksum is wrong, or the keys are not ascending. Needs memory of a
// small multiple of the bytes. `name` is the file's, for errors. Thread-safe.
Result<std::vector<TableEntry>> parse_table(std::string_view bytes,
                                            std::string_view name);

// REQUIRES: the keys are ascending. Thread-safe.
Result<std::string> format_table(const std::vector<TableEntry>& entries);

}  // namespace tagflow::checkpoint
