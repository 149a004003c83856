// Databases of LMDB, as its versions 0.9 write them on 64-bit machines:
//
//   meta | meta | page | ...                  of 512 to 32768 bytes each
//
//   number, 8 bytes | unused, 2 | flags, 2 | lower, 2 | upper, 2 |
//       offsets of nodes, 2 each, up to `lower` | free | nodes     a page
//
//   size, or number of a page, 4 | flags, 2 | size of the key, 2 |
//       key | value                                                a node
//
// The newer meta page says which page is the root of the tree of records. A
// node of a branch leads to a page of the next level; one of a leaf is a
// record. A long value lies on *overflow* pages, one behind the other; the
// node has the number of the first. Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/files.h"

namespace tagflow::checkpoint {

// Reads the records of a database, without its lock: one that is written
// meanwhile can look damaged. LMDB's own library trusts what is in a file, and
// can end the process if that is damaged; here each number is checked. No more
// pages are used than there are, and no more bytes of a page than it has: so a
// walk ends, and all records together are no longer than the file. A value
// takes no memory that its pages do not have. Thread-compatible.
class LmdbFile {
 public:
  // DataLoss if the file is no such database, or is damaged; errors of reading
  // it.
  static Result<LmdbFile> open(std::unique_ptr<ReadableFile> file);

  // The next record in the order of the tree, which is that of the keys; false
  // at the end. A key has one byte at least. DataLoss and errors as of open().
  // Unimplemented if the key has several values, or names a database of its
  // own.
  Result<bool> next(std::string& key, std::string& value);

 private:
  struct Node;
  // A page on the way from the root to the next record.
  struct Level {
    std::string page;
    size_t nodes = 0, next = 0;
    size_t left = 0;  // bytes for the nodes that are next
  };

  LmdbFile() = default;
  // DataLoss unless the pages exist, and no more pages were used than exist.
  Status use(uint64_t page, uint64_t count);
  // Goes down to a page.
  Status enter(uint64_t number);
  // The next node of the lowest page. REQUIRES: there is one.
  Result<Node> next_node();
  Status read_value(const Node& node, std::string& value);
  Status read_overflow(uint64_t page, size_t bytes, std::string& value);
  Status read(uint64_t offset, std::span<char> bytes) const;

  std::unique_ptr<ReadableFile> file_;
  size_t page_bytes_ = 0;
  uint64_t pages_ = 0, unused_ = 0;
  size_t depth_ = 0;
  uint64_t records_ = 0, given_ = 0;
  std::vector<Level> path_;
};

}  // namespace tagflow::checkpoint
