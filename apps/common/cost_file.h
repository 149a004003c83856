// Files of measured costs: what `tagflow place --save` writes and `--costs`
// reads.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "graph/placement/cost_model.h"
#include "graph/status.h"

namespace tagflow::apps {

// Note [Cost files]
// One JSON object, in which what is measured is a mean and of how many runs:
//
//   {"format": "tagflow costs", "version": 1,
//    "nodes": [{"name": "y", "output_bytes": {"mean": 16384, "count": 3},
//               "nanoseconds": {"CPU": {"mean": 5210.5, "count": 3}}}],
//    "loops": [{"frame": "while", "trips": {"mean": 20, "count": 1}}]}
//
// Nodes are known by their names and devices by their types, so the file serves
// every signature of a graph. Means count on as those of the run that measured
// them do. What a reader does not know it refuses, since a later version is to
// say so by its number; "nodes", "loops" and all that is measured may be left
// out. A node or a loop is there once; one whose name is not UTF-8 is left out.

inline constexpr int kCostFileVersion = 1;
// No such file is larger: a million nodes have some hundred megabytes.
inline constexpr size_t kMostCostFileBytes = size_t{1} << 30;

std::string format_costs(const graph::CostModel& costs);
// InvalidArgument where the text is none of these, or of another version.
Result<graph::CostModel> parse_costs(std::string_view text);

// Errors name the file. Those of parse_costs(), io::read_file() and
// io::write_file(), which replaces the file as one step.
Result<graph::CostModel> read_costs(const std::filesystem::path& path);
Status write_costs(const std::filesystem::path& path,
                   const graph::CostModel& costs);

}  // namespace tagflow::apps
