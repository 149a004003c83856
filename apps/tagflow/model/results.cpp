#include "apps/tagflow/model/results.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <climits>
#include <map>

#include "apps/shared/io/file.h"
#include "apps/shared/io/json_tensor.h"
#include "apps/shared/io/npy.h"
#include "apps/shared/io/npz.h"

namespace tagflow::apps {
namespace {

// Larger results are shortened in text output.
constexpr int64_t kMaxElementsInText = 1000;

std::string memory_json(const devices::MemoryStats& memory) {
  const bool is_counted = memory.count > 0 || memory.limit > 0;
  if (!is_counted) return "null";
  return fmt::format(
      R"({{"bytes_in_use": {}, "peak_bytes": {}, "limit_bytes": {}, )"
      R"("allocations": {}, "swapped_out_bytes": {}, "swapped_in_bytes": {}}})",
      memory.in_use, memory.peak, memory.limit, memory.count,
      memory.swapped_out, memory.swapped_in);
}

std::string result_line(const FetchName& name, const Tensor& value) {
  const bool is_large = value.num_elements() > kMaxElementsInText;
  return fmt::format(
      "{} = {}\n", name.label,
      is_large ? value.to_string(int(kMaxElementsInText))
               : value.describe() + " " + io::format_json_literal(value));
}

bool is_archive(const std::filesystem::path& path) {
  return path.extension() == ".npz";
}

Status write_archive(const std::filesystem::path& path,
                     std::span<const FetchName> names,
                     std::span<const Tensor> results) {
  std::vector<io::NamedTensor> arrays;
  for (size_t i = 0; i < names.size(); ++i)
    arrays.emplace_back(names[i].stem, results[i]);
  return io::write_npz(path, arrays);
}

}  // namespace

std::string file_stem(std::string name) {
  constexpr char kDelete = 0x7f;
  for (char& c : name)
    if (c == '/' || c == ':' || (c >= 0 && c < ' ') || c == kDelete) c = '_';
  return name;
}

FetchName fetch_of_port(const std::string& port) {
  const bool has_port = port.find(':') != std::string::npos;
  return {port, file_stem(has_port ? port : port + ":0")};
}

Status prepare_folder(const std::filesystem::path& folder,
                      std::span<const FetchName> names) {
  std::map<std::string, std::string> by_stem;
  for (const FetchName& name : names) {
    const auto [it, added] = by_stem.try_emplace(name.stem, name.label);
    if (!added && it->second != name.label)
      return invalid_argument(
          "[--out] \"{}\" and \"{}\" would both be written to {}; fetch one "
          "at a time",
          it->second, name.label, it->first);
    constexpr size_t kSuffix = 5;  // ".json"
    if (name.stem.size() + kSuffix > NAME_MAX)
      return invalid_argument(
          "[--out] \"{}\" is too long for a file name, which has at most {} "
          "bytes",
          name.label, NAME_MAX);
  }
  return is_archive(folder) ? io::check_writable(folder)
                            : io::make_folder(folder);
}

Result<std::vector<std::string>> write_results(
    const std::filesystem::path& folder, std::span<const FetchName> names,
    std::span<const Tensor> results) {
  if (is_archive(folder)) {
    TAGFLOW_RETURN_IF_ERROR(write_archive(folder, names, results));
    return std::vector{folder.string()};
  }
  std::vector<std::string> paths;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_text = results[i].dtype() == DataType::kString;
    paths.push_back((folder / names[i].stem).string() +
                    (is_text ? ".json" : ".npy"));
    Status status =
        is_text
            ? io::write_file(paths.back(), io::format_string_tensor(results[i]))
            : io::write_npy(paths.back(), results[i]);
    TAGFLOW_RETURN_IF_ERROR(
        std::move(status).with_prefix(names[i].label + ": "));
  }
  return paths;
}

std::string format_results(std::span<const FetchName> names,
                           std::span<const Tensor> results) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += result_line(names[i], results[i]);
  return text;
}

std::string format_step(int64_t step, std::span<const FetchName> names,
                        std::span<const Tensor> results) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += fmt::format("step {}: {}", step, result_line(names[i], results[i]));
  return text;
}

std::string format_step_json(int64_t step, std::span<const FetchName> names,
                             std::span<const Tensor> results) {
  std::vector<std::string> fetches;
  for (size_t i = 0; i < names.size(); ++i)
    fetches.push_back(fmt::format("{}: {}", io::json_string(names[i].label),
                                  io::format_json_literal(results[i])));
  return fmt::format(R"({{"step": {}, "fetches": {{{}}}}})"
                     "\n",
                     step, fmt::join(fetches, ", "));
}

std::string format_results_json(std::span<const FetchName> names,
                                std::span<const Tensor> results,
                                const actors::RunStats& stats,
                                std::span<const DeviceMemory> devices) {
  std::vector<std::string> fetches;
  for (size_t i = 0; i < names.size(); ++i) {
    const Shape shape = results[i].shape();
    fetches.push_back(fmt::format(
        R"({}: {{"dtype": "{}", "shape": [{}], "value": {}}})",
        io::json_string(names[i].label), dtype_name(results[i].dtype()),
        fmt::join(shape.dims(), ", "), io::format_json_literal(results[i])));
  }
  std::vector<std::string> memory;
  for (const DeviceMemory& device : devices)
    memory.push_back(fmt::format(R"({{"device": {}, "memory": {}}})",
                                 io::json_string(device.device),
                                 memory_json(device.memory)));
  return fmt::format(
      R"({{"fetches": {{{}}}, "stats": {{"fired": {}, "dead": {}, )"
      R"("frames": {}, "iterations": {}, "hops": {}, "offloaded": {}, )"
      R"("launched": {}, "max_in_flight": {}, "seconds": {}}}, )"
      R"("devices": [{}]}})"
      "\n",
      fmt::join(fetches, ", "), stats.fired, stats.dead, stats.frames,
      stats.iterations, stats.hops, stats.offloaded, stats.launched,
      stats.max_in_flight, stats.seconds, fmt::join(memory, ", "));
}

}  // namespace tagflow::apps
