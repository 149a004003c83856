// What a graph is cut into, as it is shown and written to files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/plan/distribute.h"
#include "apps/draw/drawing.h"

namespace tagflow::apps {

// A function that runs in frames of its own. A node `_Call` of the partition
// says which by its attribute "body", the index in CutPartition::bodies.
struct CutBody {
  std::string function;
  size_t nodes = 0;
  std::string file;  // its name, without the folder
};

struct CutPartition {
  std::string device;  // its full name
  size_t nodes = 0;
  size_t sends = 0;
  size_t recvs = 0;
  size_t control_loops = 0;
  std::string file;  // its name, without the folder
  std::vector<CutBody> bodies;
};

struct CutReport {
  std::vector<CutPartition> partitions;  // in the order of the distribution
  // How many tensors cross in a run, under "", and in each iteration of a
  // loop, under the name of its frame; in the order of names.
  std::vector<std::pair<std::string, size_t>> transfers;
  std::vector<std::string> warnings;
};

// REQUIRES of these: the distribution was explained. InvalidArgument where
// loops are malformed.
Result<CutReport> report_cut(const actors::Distribution& distribution,
                             actors::Devices devices);
Result<draw::Drawing> draw_cut(const actors::Distribution& distribution,
                               actors::Devices devices);

// Lines for people.
std::string format_cut(const CutReport& report);
// One JSON object, with everything.
std::string format_cut_json(const CutReport& report);

inline constexpr std::string_view kPartitionsPicture = "partitions.svg";
// The file of a partition, by its device's full name:
// "job_localhost_replica_0_task_0_device_CPU_0.pb".
std::string file_of_partition(std::string_view device);
// "..._CPU_0_body_1_fib.pb". What has no place in a file's name is "_".
std::string file_of_body(std::string_view device, size_t index,
                         std::string_view function);
// Whether the name is one that these give, or the picture's.
bool is_partition_file(std::string_view name);

// Writes the partitions and their bodies as GraphDefs into the folder, which
// exists, and removes what an earlier cut left there. Other files stay. Errors
// as graph::save_graph(), and PermissionDenied where a file cannot be removed.
Status write_partitions(const actors::Distribution& distribution,
                        const CutReport& report,
                        const std::filesystem::path& folder);

}  // namespace tagflow::apps
