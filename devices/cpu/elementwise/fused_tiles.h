// FusedTiles: a _FusedElementwise whose kernel another one calls, block by
// block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tagflow::devices {

// Where rows of elements are: those of a row are next to each other.
struct FusedRows {
  const std::byte* first = nullptr;
  int64_t row_bytes = 0;  // from a row to the next one
  bool moves = true;      // else a single element, which all of them see
};

struct FusedPlace {
  std::byte* first = nullptr;
  int64_t row_bytes = 0;
};

// A part of what the ops work on.
struct FusedBlock {
  int64_t rows = 0, columns = 0;
  std::span<const FusedRows> inputs;    // by input
  std::span<const FusedPlace> outputs;  // by value that is an output
};

// A kernel that another one can call for a block of elements. Thread-safe.
class FusedTiles {
 public:
  virtual ~FusedTiles() = default;
  // Whether the ops can work on blocks where these inputs move, so that all
  // results do.
  virtual bool can_run_blocks(std::span<const bool> moves) const = 0;
  // Computes the outputs of a block, on this thread; does not throw. The only
  // output may be where an input is.
  // REQUIRES: it can, and no other thread writes any of these elements.
  virtual void run_block(const FusedBlock& block) const = 0;
};

}  // namespace tagflow::devices
