// FusedTiles: a _FusedElementwise whose kernel is called by another one, block
// by block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tagflow::devices {

// The location of rows of elements; elements of a row are contiguous.
struct FusedRows {
  const std::byte* first = nullptr;
  int64_t row_bytes = 0;  // from a row to the next one
  bool moves = true;      // else a single element for all of them
};

struct FusedPlace {
  std::byte* first = nullptr;
  int64_t row_bytes = 0;
};

// A part of the ops' elements.
struct FusedBlock {
  int64_t rows = 0, columns = 0;
  std::span<const FusedRows> inputs;    // one for each input
  std::span<const FusedPlace> outputs;  // one for each value that is an output
};

// A kernel that another one can call for a block of elements. Thread-safe.
class FusedTiles {
 public:
  virtual ~FusedTiles() = default;
  // Whether the ops can run on blocks, given which inputs move: all results
  // then move.
  virtual bool can_run_blocks(std::span<const bool> moves) const = 0;
  // Computes the outputs of a block, on this thread; does not throw. A single
  // output may overwrite an input. REQUIRES: can_run_blocks(), and no other
  // thread writes any of these elements.
  virtual void run_block(const FusedBlock& block) const = 0;
};

}  // namespace tagflow::devices
