// Reads and writes safetensors files: devices/files/safetensors_header.h
// describes the format.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/atomic_file.h"
#include "devices/files/files.h"
#include "devices/files/safetensors_header.h"
#include "graph/allocator.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::checkpoint {

// Thread-safe.
class SafetensorsReader {
 public:
  // Reads the header. NotFound if the file does not exist, DataLoss if it is
  // truncated; errors of parse_safetensors_header(). `files` is not kept.
  static Result<std::unique_ptr<SafetensorsReader>> open(
      std::string path, FileSystem& files = local_files());

  const std::string& path() const { return path_; }
  // In the order of their places in the file.
  std::span<const SafetensorsEntry> tensors() const { return header_.entries; }
  const SafetensorsHeader& header() const { return header_; }
  // NotFound, which lists the existing ones.
  Result<const SafetensorsEntry*> find_tensor(std::string_view name) const;
  // NotFound; Unimplemented for a type that we do not support; errors of files.
  // The format has no checksums. `allocator` is of host-visible memory.
  Result<Tensor> read(std::string_view name,
                      Allocator& allocator = host_allocator()) const;

 private:
  SafetensorsReader(std::string path, std::unique_ptr<ReadableFile> file,
                    uint64_t data, SafetensorsHeader header);

  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  const uint64_t data_;  // where the data begin
  const SafetensorsHeader header_;
  std::vector<size_t> by_name_;  // indices into the header's entries
};

// A tensor that is to be written: its type and shape, and how to load it.
struct SafetensorsItem {
  std::string name;
  DataType dtype = DataType::kInvalid;
  Shape shape;
  // Called once, when it is about to be written. Its error is that of the
  // writing.
  std::function<Result<Tensor>()> load;
};

// Writes the file, as a whole or not at all. Its own errors name the file:
// InvalidArgument if a name is repeated or cannot be written, Unimplemented for
// a type that the format does not have, Internal if a tensor differs from its
// item.
Status write_safetensors(const std::string& path,
                         std::vector<SafetensorsItem> items,
                         const WriteOptions& options);

}  // namespace tagflow::checkpoint
