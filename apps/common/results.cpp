#include "apps/common/results.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "apps/io/file.h"
#include "apps/io/json_tensor.h"
#include "apps/io/npy.h"

namespace tagflow::apps {
namespace {

// Larger results are shortened in text for people.
constexpr int64_t kMaxElementsInText = 1000;

}  // namespace

std::string file_stem(const std::string& port) {
  std::string stem = port.find(':') == std::string::npos ? port + ":0" : port;
  for (char& c : stem) {
    if (c == '/' || c == ':') c = '_';
  }
  return stem;
}

Status prepare_folder(const std::filesystem::path& folder,
                      std::span<const std::string> ports) {
  std::map<std::string, std::string> by_stem;
  for (const std::string& port : ports) {
    const auto [it, added] = by_stem.try_emplace(file_stem(port), port);
    if (!added && it->second != port)
      return invalid_argument(
          "[--out] \"{}\" and \"{}\" would both be written to {}; fetch one "
          "at a time",
          it->second, port, it->first);
  }
  return io::make_folder(folder);
}

Status write_results(const std::filesystem::path& folder,
                     std::span<const std::string> ports,
                     std::span<const Tensor> results) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::filesystem::path stem = folder / file_stem(ports[i]);
    Status status;
    if (results[i].dtype() == DataType::kString) {
      status = io::write_file(stem.string() + ".json",
                              io::format_string_tensor(results[i]));
    } else {
      status = io::write_npy(stem.string() + ".npy", results[i]);
    }
    TAGFLOW_RETURN_IF_ERROR(std::move(status).with_prefix(ports[i] + ": "));
  }
  return {};
}

std::string format_results(std::span<const std::string> ports,
                           std::span<const Tensor> results) {
  std::string text;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Tensor& value = results[i];
    const bool is_large = value.num_elements() > kMaxElementsInText;
    text += fmt::format(
        "{} = {}\n", ports[i],
        is_large ? value.to_string(int(kMaxElementsInText))
                 : value.describe() + " " + io::format_json_literal(value));
  }
  return text;
}

std::string format_results_json(std::span<const std::string> ports,
                                std::span<const Tensor> results,
                                const actors::RunStats& stats) {
  std::vector<std::string> fetches;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Shape shape = results[i].shape();
    fetches.push_back(fmt::format(
        R"({}: {{"dtype": "{}", "shape": [{}], "value": {}}})",
        io::json_string(ports[i]), dtype_name(results[i].dtype()),
        fmt::join(shape.dims(), ", "), io::format_json_literal(results[i])));
  }
  return fmt::format(
      R"({{"fetches": {{{}}}, "stats": {{"fired": {}, "dead": {}, )"
      R"("frames": {}, "iterations": {}, "hops": {}, "offloaded": {}, )"
      R"("max_in_flight": {}, "seconds": {}}}}})"
      "\n",
      fmt::join(fetches, ", "), stats.fired, stats.dead, stats.frames,
      stats.iterations, stats.hops, stats.offloaded, stats.max_in_flight,
      stats.seconds);
}

}  // namespace tagflow::apps
