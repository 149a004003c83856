// The index of a tensor bundle, TensorFlow's checkpoint format V2.
//
//   PREFIX.index                 a table of all tensors and their places
//   PREFIX.data-SSSSS-of-NNNNN   their bytes, row-major and little-endian
//
// The table has a header under the empty key, and an entry under each tensor's
// name. A tensor that was saved in slices has an entry without a place, which
// lists the slices; each slice is an entry under its slice_key(), which begins
// with a zero byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/tensor_slice.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

// The maximum number of slices of one tensor; more are rejected.
inline constexpr size_t kMaxSlices = 10'000;

struct BundleEntry {
  std::string key;
  // The number in GraphDef, also for types that we do not support.
  int dtype = 0;
  Shape shape;
  // The place of the bytes; unused for a tensor in slices.
  int shard = 0;
  uint64_t offset = 0, size = 0;
  uint32_t crc = 0;  // masked
  std::vector<TensorSlice> slices;

  bool is_sliced() const { return !slices.empty(); }
  // Whether it is a slice, not a tensor.
  bool is_slice() const { return key.starts_with('\0'); }
  // Each slice, resolved to its place in the tensor.
  std::vector<TensorSlice> resolved_slices() const;
  // "float", or "type 24".
  std::string dtype_text() const;
};

struct BundleIndex {
  int num_shards = 1;
  std::vector<BundleEntry> entries;  // in ascending order of keys
};

// DataLoss if the bytes are damaged; Unimplemented for a bundle that cannot
// be read: from a big-endian machine, or a later version. `name` is the file's,
// for errors. Thread-safe.
Result<BundleIndex> parse_bundle_index(std::string_view bytes,
                                       std::string_view name);
// REQUIRES: the keys are ascending and not empty. Thread-safe.
Result<std::string> format_bundle_index(const BundleIndex& index);

std::string index_path(std::string_view prefix);
std::string data_path(std::string_view prefix, int shard, int num_shards);

}  // namespace tagflow::checkpoint
