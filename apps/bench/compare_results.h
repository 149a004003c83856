// What an entry computes here and in TensorFlow.
#pragma once

#include <filesystem>
#include <string>

#include "apps/bench/compare_entries.h"

namespace tagflow::apps {

inline constexpr double kCompareTolerance = 1e-4;

// Where TensorFlow writes a result of the entry, of those that are compared:
// "results" is what the names of its files begin with.
std::string result_file(const std::string& results, size_t number);

// The largest difference between results of one run of the entry here and those
// in the files, as a part of the largest element of each; DataLoss above
// kCompareTolerance. Errors of the files, and of the session. REQUIRES:
// !entry.program.empty()
Result<double> compare_results(const CompareEntry& entry,
                               const std::string& results,
                               const EngineOptions& options);

}  // namespace tagflow::apps
