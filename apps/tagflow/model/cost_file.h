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
// One JSON object, in which a measurement is a mean and the number of runs:
//
//   {"format": "tagflow costs", "version": 1,
//    "nodes": [{"name": "y", "output_bytes": {"mean": 16384, "count": 3},
//               "nanoseconds": {"CPU": {"mean": 5210.5, "count": 3}}}],
//    "loops": [{"frame": "while", "trips": {"mean": 20, "count": 1}}]}
//
// Nodes are known by their names and devices by their types, so the file serves
// every signature of a graph. Later runs update the means. A reader rejects
// unknown members, since a later version has another number; "nodes", "loops",
// "links" and each measurement are optional. A node, a loop or a link occurs
// once; a node or a loop whose name is not UTF-8 is left out.
//
// Version 2 has the links between tasks of a cluster, too:
//   "links": [{"from": "/job:worker/replica:0/task:0", "to": ...,
//              "latency_ns": 20000, "bytes_per_ns": 3.5}, ...]
// A file without them is written as version 1.

inline constexpr int kCostFileVersion = 2;
// A limit on the size: a million nodes take some hundred megabytes.
inline constexpr size_t kMostCostFileBytes = size_t{1} << 30;

std::string format_costs(const graph::CostModel& costs);
// Returns InvalidArgument if the text is not a cost file of version 1 or 2.
Result<graph::CostModel> parse_costs(std::string_view text);

// Return errors of parse_costs(), io::read_file() and io::write_file(), which
// replaces the file atomically. Errors name the file.
Result<graph::CostModel> read_costs(const std::filesystem::path& path);
Status write_costs(const std::filesystem::path& path,
                   const graph::CostModel& costs);
// Adds newer costs to those of the file, or makes it. Processes that do so at
// the same time wait for each other, by a lock of the file PATH.lock, which
// stays; DeadlineExceeded after ten seconds.
Status add_to_costs(const std::filesystem::path& path,
                    const graph::CostModel& newer);

}  // namespace tagflow::apps
