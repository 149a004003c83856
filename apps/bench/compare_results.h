// Compares the results of an entry here and in TensorFlow.
#pragma once

#include <filesystem>
#include <string>

#include "apps/bench/compare_entries.h"

namespace tagflow::apps {

inline constexpr double kCompareTolerance = 1e-4;

// The file to which TensorFlow writes one of the compared results of the entry;
// `results` is the prefix of the file names.
std::string result_file(const std::string& results, size_t number);

// The largest difference between the results of one run of the entry here and
// those in the files, relative to the largest element of each. Returns DataLoss
// above kCompareTolerance, and errors of the files and of the session.
// REQUIRES: !entry.program.empty()
Result<double> compare_results(const CompareEntry& entry,
                               const std::string& results,
                               const EngineOptions& options);

}  // namespace tagflow::apps
