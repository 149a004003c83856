// Writing what one file of tensors has as another, of the format that its name
// asks for.
#pragma once

#include <string>

#include "devices/checkpoint/tensor_file.h"
#include "graph/status.h"

namespace tagflow::apps {

// To a .safetensors file, without what a bundle says of objects, or to a bundle
// of so many shards with the prefix `path`; there as a whole or not at all. One
// tensor at a time is in memory. Errors of reading and of BundleWriter and
// write_safetensors(); InvalidArgument where `path` is a folder. REQUIRES:
// shards >= 1, and 1 for a .safetensors file.
Status convert(const checkpoint::TensorFile& from, const std::string& path,
               int shards);

}  // namespace tagflow::apps
