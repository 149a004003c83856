#include "apps/common/cost_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "apps/io/file.h"

namespace tagflow::apps {
namespace {

using CostJson = nlohmann::ordered_json;
using Mean = graph::CostModel::Mean;

constexpr std::string_view kCostFormat = "tagflow costs";

CostJson mean_to_json(const Mean& mean) {
  return {{"mean", mean.value}, {"count", mean.count}};
}

// Whether JSON can represent the name, which must be UTF-8.
bool is_text(const std::string& name) {
  const std::string written =
      CostJson(name).dump(-1, ' ', false, CostJson::error_handler_t::replace);
  return CostJson::parse(written, nullptr, false) == CostJson(name);
}

// Checks that it is an object with these fields.
Status check_fields(const CostJson& json, const std::string& what,
                    std::initializer_list<std::string_view> fields) {
  if (!json.is_object())
    return invalid_argument("[costs] {} is not an object", what);
  for (const auto& item : json.items())
    if (std::find(fields.begin(), fields.end(), item.key()) == fields.end())
      return invalid_argument("[costs] {} has an unknown field \"{}\"", what,
                              item.key());
  return {};
}

Result<std::string> parse_name(const CostJson& json, const char* field,
                               const std::string& what) {
  const auto it = json.find(field);
  if (it == json.end() || !it->is_string() ||
      it->get_ref<const std::string&>().empty())
    return invalid_argument("[costs] {} has no \"{}\"", what, field);
  return it->get<std::string>();
}

// The cost model checks the numbers.
Result<Mean> parse_mean(const CostJson& json, const std::string& what) {
  TAGFLOW_RETURN_IF_ERROR(check_fields(json, what, {"mean", "count"}));
  const auto mean = json.find("mean");
  const auto count = json.find("count");
  if (mean == json.end() || !mean->is_number())
    return invalid_argument("[costs] the \"mean\" of {} is not a number", what);
  constexpr int kMost = graph::CostModel::kMeasurements;
  const bool is_count = count != json.end() && count->is_number_unsigned() &&
                        count->get<uint64_t>() >= 1 &&
                        count->get<uint64_t>() <= uint64_t(kMost);
  if (!is_count)
    return invalid_argument(
        "[costs] the \"count\" of {} is not a number from 1 to {}", what,
        kMost);
  return Mean{mean->get<double>(), int(count->get<uint64_t>())};
}

// The list at `field`; empty where there is none.
Result<const CostJson*> find_list(const CostJson& json, const char* field) {
  static const CostJson none = CostJson::array();
  const auto it = json.find(field);
  if (it == json.end()) return &none;
  if (!it->is_array())
    return invalid_argument("[costs] \"{}\" is not a list", field);
  return &*it;
}

Status parse_node(const CostJson& json, std::set<std::string>& seen,
                  graph::CostModel& costs) {
  TAGFLOW_RETURN_IF_ERROR(check_fields(
      json, "an item of \"nodes\"", {"name", "output_bytes", "nanoseconds"}));
  graph::CostModel::NodeCosts node;
  TAGFLOW_ASSIGN(node.node, parse_name(json, "name", "an item of \"nodes\""));
  const std::string what = fmt::format("node \"{}\"", node.node);
  if (!seen.insert(node.node).second)
    return invalid_argument("[costs] {} is there twice", what);
  if (const auto bytes = json.find("output_bytes"); bytes != json.end()) {
    TAGFLOW_ASSIGN(node.output_bytes,
                   parse_mean(*bytes, "the output bytes of " + what));
  }
  if (const auto times = json.find("nanoseconds"); times != json.end()) {
    if (!times->is_object())
      return invalid_argument(
          "[costs] the \"nanoseconds\" of {} are not an object", what);
    for (const auto& item : times->items()) {
      if (item.key().empty())
        return invalid_argument("[costs] a device type of {} is empty", what);
      TAGFLOW_ASSIGN(
          const Mean mean,
          parse_mean(item.value(), fmt::format("the nanoseconds of {} on {}",
                                               what, item.key())));
      node.nanoseconds.emplace_back(item.key(), mean);
    }
  }
  return costs.set(std::move(node));
}

Status parse_loop(const CostJson& json, std::set<std::string>& seen,
                  graph::CostModel& costs) {
  TAGFLOW_RETURN_IF_ERROR(
      check_fields(json, "an item of \"loops\"", {"frame", "trips"}));
  graph::CostModel::LoopCosts loop;
  TAGFLOW_ASSIGN(loop.frame, parse_name(json, "frame", "an item of \"loops\""));
  const std::string what = fmt::format("loop \"{}\"", loop.frame);
  if (!seen.insert(loop.frame).second)
    return invalid_argument("[costs] {} is there twice", what);
  if (const auto trips = json.find("trips"); trips != json.end()) {
    TAGFLOW_ASSIGN(loop.trips, parse_mean(*trips, "the trips of " + what));
  }
  return costs.set(std::move(loop));
}

}  // namespace

std::string format_costs(const graph::CostModel& costs) {
  CostJson nodes = CostJson::array(), loops = CostJson::array();
  for (const auto& node : costs.node_costs()) {
    if (!is_text(node.node)) continue;
    CostJson& json = nodes.emplace_back(CostJson::object());
    json["name"] = node.node;
    if (node.output_bytes.count > 0)
      json["output_bytes"] = mean_to_json(node.output_bytes);
    CostJson times = CostJson::object();
    for (const auto& [type, mean] : node.nanoseconds)
      times[type] = mean_to_json(mean);
    if (!times.empty()) json["nanoseconds"] = std::move(times);
  }
  for (const auto& loop : costs.loop_costs())
    if (is_text(loop.frame))
      loops.push_back(
          CostJson{{"frame", loop.frame}, {"trips", mean_to_json(loop.trips)}});
  const CostJson root = {{"format", kCostFormat},
                         {"version", kCostFileVersion},
                         {"nodes", std::move(nodes)},
                         {"loops", std::move(loops)}};
  return root.dump(1, ' ', false, CostJson::error_handler_t::replace) + "\n";
}

Result<graph::CostModel> parse_costs(std::string_view text) {
  const CostJson root = CostJson::parse(text, nullptr, false);
  if (root.is_discarded()) return invalid_argument("[costs] it is not JSON");
  const auto format = root.is_object() ? root.find("format") : root.end();
  if (format == root.end() || !format->is_string() ||
      format->get_ref<const std::string&>() != kCostFormat)
    return invalid_argument("[costs] it has no \"format\" of \"{}\"",
                            kCostFormat);
  const auto version = root.find("version");
  if (version == root.end() || !version->is_number_integer())
    return invalid_argument("[costs] it has no \"version\"");
  if (*version != CostJson(kCostFileVersion))
    return invalid_argument("[costs] it is of version {}, not {}",
                            version->dump(), kCostFileVersion);
  TAGFLOW_RETURN_IF_ERROR(
      check_fields(root, "the file", {"format", "version", "nodes", "loops"}));
  graph::CostModel costs;
  TAGFLOW_ASSIGN(const CostJson* nodes, find_list(root, "nodes"));
  std::set<std::string> seen_nodes, seen_loops;
  for (const CostJson& node : *nodes)
    TAGFLOW_RETURN_IF_ERROR(parse_node(node, seen_nodes, costs));
  TAGFLOW_ASSIGN(const CostJson* loops, find_list(root, "loops"));
  for (const CostJson& loop : *loops)
    TAGFLOW_RETURN_IF_ERROR(parse_loop(loop, seen_loops, costs));
  return costs;
}

Result<graph::CostModel> read_costs(const std::filesystem::path& path) {
  TAGFLOW_ASSIGN(const std::string text,
                 io::read_file(path, kMostCostFileBytes));
  Result<graph::CostModel> costs = parse_costs(text);
  if (costs.ok()) return costs;
  return costs.status().with_prefix(fmt::format("\"{}\": ", path.string()));
}

Status write_costs(const std::filesystem::path& path,
                   const graph::CostModel& costs) {
  return io::write_file(path, format_costs(costs));
}

}  // namespace tagflow::apps
