// The partitions of a graph, to be printed and written to files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/plan/distribute.h"
#include "apps/shared/draw/drawing.h"

namespace tagflow::apps {

// A function that runs in frames of its own. The attribute "body" of a node
// `_Call` of the partition is the index in CutPartition::bodies.
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
  // The number of tensors that cross in a run, under "", and in each iteration
  // of a loop, under the name of its frame; in the order of names.
  std::vector<std::pair<std::string, size_t>> transfers;
  std::vector<std::string> warnings;
};

// These return InvalidArgument if loops are malformed. REQUIRES: the
// distribution was explained.
Result<CutReport> report_cut(const actors::Distribution& distribution,
                             std::span<const graph::DeviceInfo> devices);
Result<draw::Drawing> draw_cut(const actors::Distribution& distribution,
                               std::span<const graph::DeviceInfo> devices);

// Lines of text.
std::string format_cut(const CutReport& report);
// One JSON object, with everything.
std::string format_cut_json(const CutReport& report);

inline constexpr std::string_view kPartitionsPicture = "partitions.svg";
// The file of a partition, by its device's full name:
// "job_localhost_replica_0_task_0_device_CPU_0.pb".
std::string file_of_partition(std::string_view device);
// "..._CPU_0_body_1_fib.pb". Characters that a file name cannot have become
// "_".
std::string file_of_body(std::string_view device, size_t index,
                         std::string_view function);
// Whether these functions could return the name, or it is the picture's.
bool is_partition_file(std::string_view name);

// Writes the partitions and their bodies as GraphDefs into the folder, which
// exists, and removes the files of an earlier cut. Other files stay. Returns
// errors of graph::save_graph(), and PermissionDenied if a file cannot be
// removed.
Status write_partitions(const actors::Distribution& distribution,
                        const CutReport& report,
                        const std::filesystem::path& folder);

}  // namespace tagflow::apps
