// A cache of a dataset's elements in files, which are TensorFlow's: a bundle,
// as checkpoints are, with a tensor for each component of each element.
#pragma once

#include <memory>
#include <string>

#include "devices/files/host_access.h"
#include "devices/kernels/dataset/dataset.h"

namespace tagflow::devices {

// The stage of a dataset that is cached in files beginning with `prefix`. If
// these are there, it gives the elements that they have; otherwise those of
// `input`, which it writes. What an iteration has written is used by later
// ones if it came to the end, and is removed otherwise. Meanwhile a lock file
// keeps others from writing: AlreadyExists for its first element then, as in
// TensorFlow. `host` says which files may be read and written.
//
// If its session ends meanwhile, the files are removed soon. Reads and writes
// on the worker inside.
StagePtr file_cache_stage(Segment& segment, const Dataset& self,
                          DatasetRef input, std::string prefix,
                          std::shared_ptr<const HostAccess> host);

}  // namespace tagflow::devices
