// Loops over the strings of a batch, which are parsed apart from one another.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "devices/kernel.h"

namespace tagflow::devices {

// Calls parse(row) with each of `rows` rows, on several threads. Returns the
// error of the first row that has one. `parse` is safe to call concurrently.
template <class Parse>
Status for_each_row(const KernelContext& context, int64_t rows,
                    double nanoseconds_per_row, const Parse& parse) {
  std::mutex mutex;  // guards the below
  int64_t failed = rows;
  Status first;
  context.parallel_for(rows, nanoseconds_per_row,
                       [&](int64_t begin, int64_t end) {
                         for (int64_t row = begin; row < end; ++row) {
                           Status status = parse(row);
                           if (status.ok()) [[likely]]
                             continue;
                           std::lock_guard lock(mutex);
                           if (row < failed) {
                             failed = row;
                             first = std::move(status);
                           }
                           return;
                         }
                       });
  return first;
}

}  // namespace tagflow::devices
