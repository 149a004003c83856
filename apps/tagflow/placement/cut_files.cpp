// The files of a cut graph.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "apps/tagflow/placement/cut.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGraphEnding = ".pb";

// The beginning of the text; characters except letters, digits, '.', '-' and
// '_' become '_'.
std::string to_file_name(std::string_view text) {
  constexpr size_t kMaxLength = 80;
  std::string name(text.substr(0, kMaxLength));
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (!is_plain) c = '_';
  }
  return name;
}

// The device's name without its first '/'.
std::string stem_of_device(std::string_view device) {
  return to_file_name(device.substr(device.starts_with('/') ? 1 : 0));
}

// Removes files of an earlier cut that this one did not write.
Status remove_stale_files(const fs::path& folder,
                          const std::set<std::string>& written) {
  std::error_code code;
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (is_partition_file(name) && !written.contains(name) &&
        !fs::is_directory(it->symlink_status(ignored)))
      stale.push_back(it->path());
  }
  for (const fs::path& path : stale) {
    if (code) break;
    fs::remove(path, code);
  }
  if (!code) return {};
  return error(Code::kPermissionDenied,
               "[--out] cannot remove what an earlier run left in \"{}\": {}",
               folder.string(), code.message());
}

}  // namespace

std::string file_of_partition(std::string_view device) {
  return stem_of_device(device) + std::string(kGraphEnding);
}

std::string file_of_body(std::string_view device, size_t index,
                         std::string_view function) {
  return fmt::format("{}_body_{}_{}{}", stem_of_device(device), index,
                     to_file_name(function), kGraphEnding);
}

bool is_partition_file(std::string_view name) {
  if (name == kPartitionsPicture) return true;
  if (!name.starts_with("job_") || !name.ends_with(kGraphEnding)) return false;
  size_t at = 0;
  for (const std::string_view part : {"_replica_", "_task_", "_device_"}) {
    at = name.find(part, at);
    if (at == name.npos) return false;
  }
  return true;
}

Status write_partitions(const actors::Distribution& distribution,
                        const CutReport& report, const fs::path& folder) {
  std::set<std::string> written;
  const auto write = [&](const graph::Graph& graph,
                         const std::string& file) -> Status {
    written.insert(file);
    return graph::save_graph(graph, folder / file);
  };
  for (size_t i = 0; i < report.partitions.size(); ++i) {
    const graph::Program& program = distribution.partitions[i].program;
    const CutPartition& part = report.partitions[i];
    TAGFLOW_RETURN_IF_ERROR(write(program.graph, part.file));
    for (size_t k = 0; k < part.bodies.size(); ++k)
      TAGFLOW_RETURN_IF_ERROR(
          write(program.bodies[k]->graph, part.bodies[k].file));
  }
  return remove_stale_files(folder, written);
}

}  // namespace tagflow::apps
