// --expect of `tagflow run`: results that are known.
#pragma once

#include <span>
#include <string>

#include "apps/tagflow/model/results.h"
#include "graph/status.h"

namespace tagflow::apps {

// Compares the results with those of a file or folder, by the rules of
// compare() in conform/compare.h. A folder, or a file that ends in .npz, has
// them by the names that --out writes; a single .npy, or a .json of strings, is
// the only one. InvalidArgument for all that differ, in one message; errors of
// reading.
Status check_expected(const std::string& path, std::span<const FetchName> names,
                      std::span<const Tensor> results);

}  // namespace tagflow::apps
