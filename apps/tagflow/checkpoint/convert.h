// Converts a file of tensors to the format that the new name implies.
//
// A prefix of a bundle may have any extension, as in "model.ckpt", except that
// of another format: that of a .safetensors file, if it is misspelt, or one of
// a format that is not written.
#pragma once

#include <string>

#include "devices/files/tensor_file.h"
#include "graph/status.h"

namespace tagflow::apps {

// InvalidArgument if the extension is that of neither format, with the nearest
// one. Thread-safe.
Status check_target(const std::string& path);

// Writes a .safetensors file, without a bundle's object graph, or a bundle of
// `shards` shards with the prefix `path`. The result is complete or not there
// at all. One tensor at a time is in memory. Returns errors of reading, of
// BundleWriter and of write_safetensors(), which name the file that is read,
// and InvalidArgument if `path` is a folder. REQUIRES: shards >= 1, and 1
// for a .safetensors file.
Status convert(const checkpoint::TensorFile& from, const std::string& path,
               int shards);

}  // namespace tagflow::apps
