// An allocator that never has memory.
#pragma once

#include "graph/allocator.h"

namespace tagflow {

class NoMemory final : public Allocator {
 public:
  Buffer* allocate(DataType, int64_t) override { return nullptr; }
  void deallocate(Buffer*) override {}
};

}  // namespace tagflow
