// Writes the results of a run as text, as JSON, or to files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "apps/shared/runs/device_memory.h"
#include "graph/status.h"

namespace tagflow::apps {

// A fetch: its name for users, and the stem of its file.
struct FetchName {
  std::string label;
  std::string stem;
};
// Slashes, colons and control characters become underscores.
std::string file_stem(std::string name);
// The file of "name:1" is "name_1", that of "name" is "name_0".
FetchName fetch_of_port(const std::string& port);

// Makes the folder for the results, before the run, so that no result is lost.
// A name that ends in ".npz" is that of one file for all, which must be
// writable.
// Returns InvalidArgument if two results would go to one file, or a name is
// too long for a file.
Status prepare_folder(const std::filesystem::path& folder,
                      std::span<const FetchName> names);

// Writes each result to FOLDER/STEM.npy (strings: .json), or as STEM to the
// .npz file, and returns the paths of the files. InvalidArgument for handles,
// which cannot be written, and for strings in an .npz file. REQUIRES:
// prepare_folder() was called.
Result<std::vector<std::string>> write_results(
    const std::filesystem::path& folder, std::span<const FetchName> names,
    std::span<const Tensor> results);

// A line for each: "name:0 = float[2] [1, 2]". Large ones are shortened.
std::string format_results(std::span<const FetchName> names,
                           std::span<const Tensor> results);

// The results of one of many steps: a line for each, "step 7: name:0 = float[]
// 1.5"; or one JSON object on a line, {"step": 7, "fetches": {label: literal}}.
std::string format_step(int64_t step, std::span<const FetchName> names,
                        std::span<const Tensor> results);
std::string format_step_json(int64_t step, std::span<const FetchName> names,
                             std::span<const Tensor> results);

// One JSON object: {"fetches": {label: {"dtype", "shape", "value"}}, "stats":
// {...}, "devices": [{"device", "memory": {...}}]}; values are literals, see
// io/json_tensor.h. For a device that does not count, a CPU without a limit,
// "memory" is null.
std::string format_results_json(std::span<const FetchName> names,
                                std::span<const Tensor> results,
                                const actors::RunStats& stats,
                                std::span<const DeviceMemory> devices);

}  // namespace tagflow::apps
