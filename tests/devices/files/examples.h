// Tensors that the tests of checkpoints save and read.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace tagflow::checkpoint {

// The types of record_checkpoints.py, in its order.
std::span<const DataType> example_types();
// The tensor that it makes: element i has the value (3 * i) % 5.
Tensor example(DataType dtype, const Shape& shape);
// numpy's name: "float32".
std::string numpy_name(DataType dtype);

// A file of tests/devices/data/checkpoint.
std::string recorded_path(std::string_view name);
// The bytes of a file; fails the test case if there is none.
std::string bytes_of(const std::string& path);

// A folder that is removed with its end.
class TempFolder {
 public:
  explicit TempFolder(std::string_view name);
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();
  std::string path(std::string_view name) const;
  // The names of the files in it, sorted.
  std::vector<std::string> names() const;

 private:
  const std::filesystem::path path_;
};

}  // namespace tagflow::checkpoint
