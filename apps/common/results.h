// What a run gave, written for people, for scripts, or to files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "actors/session.h"
#include "graph/status.h"

namespace tagflow::apps {

// "name:0" -> "name_0", slashes too: the stem of a result's file.
std::string file_stem(const std::string& port);

// Makes the folder for the results of `ports`: before the run, so that nothing
// is computed in vain. InvalidArgument where two would go to one file.
Status prepare_folder(const std::filesystem::path& folder,
                      std::span<const std::string> ports);

// Writes each result to FOLDER/STEM.npy (strings: .json). InvalidArgument for
// handles, which no file can hold. REQUIRES: prepare_folder().
Status write_results(const std::filesystem::path& folder,
                     std::span<const std::string> ports,
                     std::span<const Tensor> results);

// A line for each: "name:0 = float[2] [1, 2]". Large ones are shortened.
std::string format_results(std::span<const std::string> ports,
                           std::span<const Tensor> results);

// One JSON object: {"fetches": {port: {"dtype", "shape", "value"}},
// "stats": {...}}; values are literals, see io/json_tensor.h.
std::string format_results_json(std::span<const std::string> ports,
                                std::span<const Tensor> results,
                                const actors::RunStats& stats);

}  // namespace tagflow::apps
