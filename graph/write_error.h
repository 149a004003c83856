// The codes of files that cannot be written.
#pragma once

#include "graph/status.h"

namespace tagflow {

// ResourceExhausted if the system call that left `number` in errno failed for
// lack of something: room on the disk, a quota, a limit on the file's size,
// descriptors, memory. Otherwise `other`. Thread-safe.
Code code_of_write(int number, Code other);

}  // namespace tagflow
