// FusedTiles: a _FusedElementwise whose kernel another one calls, tile by tile.
#pragma once

#include "devices/kernel.h"

namespace tagflow::devices {

// What such kernels are, beside kernels. Thread-safe.
class FusedTiles {
 public:
  virtual ~FusedTiles() = default;
  // Whether the result can be written over input 0, tile by tile: each input
  // is of its shape, or a single element.
  virtual bool can_run_in_place(const KernelContext& context) const = 0;
  // Does so for its elements [begin, end). REQUIRES: it can, and no other
  // thread is at any of these elements.
  virtual void run_in_place(const KernelContext& context, void* elements,
                            int64_t begin, int64_t end) const = 0;
};

}  // namespace tagflow::devices
