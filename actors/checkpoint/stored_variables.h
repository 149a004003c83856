// StoredVariables: which part of a checkpoint each worker is to read.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "devices/files/bundle_index.h"

namespace tagflow::actors {

// The worker that reads a variable, by the variable's name: its place among the
// tasks of the session.
using Readers = std::map<std::string, size_t, std::less<>>;

// Variables whose values are not read by the process that restores.
struct StoredVariables {
  struct Place {
    size_t task = 0;
    checkpoint::BundleEntry entry;  // not in slices
  };
  std::string prefix;  // of the bundle
  int num_shards = 1;
  std::map<std::string, Place, std::less<>> places;  // by variable
};

}  // namespace tagflow::actors
