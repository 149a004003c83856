#include "apps/tagflow/model/cost_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "apps/shared/io/file.h"

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

// Excludes other processes that add to the file, as long as it lives. The file
// itself is replaced, and a lock of it would go with it; a lock of its folder
// is that of checkpoints.
class CostLock {
 public:
  // DeadlineExceeded if another process does not give the lock up.
  static Result<CostLock> take(const std::filesystem::path& file) {
    const std::string path = file.string() + ".lock";
    CostLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    const auto end = std::chrono::steady_clock::now() + kPatience;
    // Without the right to make the file, writing fails with the reason.
    while (lock.descriptor_ >= 0 &&
           flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0 &&
           (errno == EWOULDBLOCK || errno == EINTR)) {
      if (std::chrono::steady_clock::now() > end)
        return error(Code::kDeadlineExceeded,
                     "[costs] another process holds the lock \"{}\"", path);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return lock;
  }
  CostLock(CostLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~CostLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }

 private:
  static constexpr std::chrono::seconds kPatience{10};
  explicit CostLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

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

// Checks that it has a list at `field`, or nothing.
Status check_list(const CostJson& json, const char* field) {
  const auto it = json.find(field);
  if (it != json.end() && !it->is_array())
    return invalid_argument("[costs] \"{}\" is not a list", field);
  return {};
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

Status parse_link(const CostJson& json, std::set<std::string>& seen,
                  graph::CostModel& costs) {
  const std::string item = "an item of \"links\"";
  TAGFLOW_RETURN_IF_ERROR(
      check_fields(json, item, {"from", "to", "latency_ns", "bytes_per_ns"}));
  graph::CostModel::LinkCosts link;
  TAGFLOW_ASSIGN(link.from, parse_name(json, "from", item));
  TAGFLOW_ASSIGN(link.to, parse_name(json, "to", item));
  const std::string what =
      fmt::format("the link from \"{}\" to \"{}\"", link.from, link.to);
  // One task may have several names.
  TAGFLOW_ASSIGN(const auto from, graph::DeviceName::parse(link.from));
  TAGFLOW_ASSIGN(const auto to, graph::DeviceName::parse(link.to));
  if (!seen.insert(from.to_string() + " " + to.to_string()).second)
    return invalid_argument("[costs] {} is there twice", what);
  for (const auto& [field, number] :
       {std::pair{"latency_ns", &link.link.latency_ns},
        std::pair{"bytes_per_ns", &link.link.bytes_per_ns}}) {
    const auto it = json.find(field);
    if (it == json.end() || !it->is_number())
      return invalid_argument("[costs] the \"{}\" of {} is not a number", field,
                              what);
    *number = it->get<double>();
  }
  return costs.set(std::move(link));
}

}  // namespace

std::string format_costs(const graph::CostModel& costs) {
  CostJson nodes = CostJson::array(), loops = CostJson::array(),
           links = CostJson::array();
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
  for (const auto& link : costs.link_costs())
    links.push_back(CostJson{{"from", link.from},
                             {"to", link.to},
                             {"latency_ns", link.link.latency_ns},
                             {"bytes_per_ns", link.link.bytes_per_ns}});
  CostJson root = {{"format", kCostFormat},
                   {"version", links.empty() ? 1 : kCostFileVersion},
                   {"nodes", std::move(nodes)},
                   {"loops", std::move(loops)}};
  if (!links.empty()) root["links"] = std::move(links);
  return root.dump(1, ' ', false, CostJson::error_handler_t::replace) + "\n";
}

namespace {

// Reads the costs while the parser runs. It parses each item of a list at its
// end and has the parser drop it: as JSON all items take many times the memory
// of the file, and the parser looks at all that it has kept of a list after
// each further object in it. It also finds what the parser accepts: deep
// nesting, by which copies would overflow the stack, and members of one name,
// of which the parser keeps the last.
class CostReader {
 public:
  bool operator()(int depth, CostJson::parse_event_t event, CostJson& value) {
    constexpr int kMostLevels = 8;
    using Event = CostJson::parse_event_t;
    if (depth == kListLevel) {
      if (event == Event::key) member_ = value.get_ref<const std::string&>();
      if (event == Event::array_start) is_list_ = true;
      if (event == Event::array_end) is_list_ = false;
    }
    if (depth > kMostLevels) {
      error_ = "it is nested too deeply";
      return false;
    }
    if (event == Event::object_start) members_.emplace_back();
    if (event == Event::object_end && !members_.empty()) members_.pop_back();
    if (event == Event::key && !members_.empty()) {
      const auto& name = value.get_ref<const std::string&>();
      if (!members_.back().insert(name).second)
        error_ = fmt::format("an object has two members \"{}\"", name);
    }
    const bool is_end = event == Event::value || event == Event::object_end ||
                        event == Event::array_end;
    if (!is_end || depth != kListLevel + 1 || !is_list_) return true;
    read_item(value);
    return false;  // the parser drops it
  }
  // Empty: nothing is wrong.
  const std::string& error() const { return error_; }
  // What is wrong with the first bad item; later items are not read.
  const Status& item_error() const { return item_error_; }
  graph::CostModel take_costs() && { return std::move(costs_); }

 private:
  static constexpr int kListLevel = 1;

  void read_item(const CostJson& item) {
    if (!item_error_.ok()) return;
    if (member_ == "nodes") item_error_ = parse_node(item, seen_nodes_, costs_);
    if (member_ == "loops") item_error_ = parse_loop(item, seen_loops_, costs_);
    if (member_ == "links") item_error_ = parse_link(item, seen_links_, costs_);
  }

  std::string member_;    // the last of the file's object
  bool is_list_ = false;  // and it is a list that has not ended
  graph::CostModel costs_;
  std::set<std::string> seen_nodes_, seen_loops_, seen_links_;
  Status item_error_;
  std::vector<std::set<std::string>> members_;  // of the open objects
  std::string error_;
};

// The file without the items of its lists, which `reader` reads.
Result<CostJson> parse_json(std::string_view text, CostReader& reader) {
  // The parser would end there.
  if (text.find('\0') != text.npos)
    return invalid_argument("[costs] it is not JSON: it has a byte 0");
  if (text.empty()) return invalid_argument("[costs] it is empty");
  CostJson root;
  try {
    root = CostJson::parse(text, std::ref(reader));
  } catch (const CostJson::parse_error& thrown) {
    return invalid_argument("[costs] it is not JSON: see byte {}", thrown.byte);
  } catch (const CostJson::out_of_range&) {
    return invalid_argument("[costs] it is not JSON: a number is too large");
  }
  if (!reader.error().empty())
    return invalid_argument("[costs] {}", reader.error());
  return root;
}

}  // namespace

Result<graph::CostModel> parse_costs(std::string_view text) {
  CostReader reader;
  TAGFLOW_ASSIGN(const CostJson root, parse_json(text, reader));
  const auto format = root.is_object() ? root.find("format") : root.end();
  if (format == root.end() || !format->is_string() ||
      format->get_ref<const std::string&>() != kCostFormat)
    return invalid_argument("[costs] it has no \"format\" of \"{}\"",
                            kCostFormat);
  const auto version = root.find("version");
  if (version == root.end())
    return invalid_argument("[costs] it has no \"version\"");
  const bool has_links = *version == CostJson(kCostFileVersion);
  if (!has_links && *version != CostJson(1))
    return invalid_argument("[costs] it is of version {}, not 1 or {}",
                            version->dump(), kCostFileVersion);
  TAGFLOW_RETURN_IF_ERROR(check_fields(
      root, "the file",
      has_links
          ? std::initializer_list<std::string_view>{"format", "version",
                                                    "nodes", "loops", "links"}
          : std::initializer_list<std::string_view>{"format", "version",
                                                    "nodes", "loops"}));
  for (const char* field : {"nodes", "loops", "links"})
    TAGFLOW_RETURN_IF_ERROR(check_list(root, field));
  TAGFLOW_RETURN_IF_ERROR(reader.item_error());
  return std::move(reader).take_costs();
}

Result<graph::CostModel> read_costs(const std::filesystem::path& path) {
  TAGFLOW_ASSIGN(const std::string text,
                 io::read_file(path, kMostCostFileBytes, io::Pipes::kRead));
  Result<graph::CostModel> costs = parse_costs(text);
  if (costs.ok()) return costs;
  return costs.status().with_prefix(fmt::format("\"{}\": ", path.string()));
}

Status write_costs(const std::filesystem::path& path,
                   const graph::CostModel& costs) {
  return io::write_file(path, format_costs(costs));
}

Status add_to_costs(const std::filesystem::path& path,
                    const graph::CostModel& newer) {
  TAGFLOW_ASSIGN(const CostLock lock, CostLock::take(path));
  Result<graph::CostModel> costs = read_costs(path);
  if (costs.status().code() == Code::kNotFound) costs = graph::CostModel();
  if (!costs.ok()) return std::move(costs).status();
  costs->add(newer);
  return write_costs(path, *costs);
}

}  // namespace tagflow::apps
