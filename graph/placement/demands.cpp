#include "graph/placement/demands.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/analysis/node_queries.h"
#include "graph/placement/op_work.h"

namespace tagflow::graph {
namespace {

// How many devices a message lists.
constexpr size_t kShownDevices = 8;

// Whether the devices are those of other processes, which have made them.
bool in_cluster(std::span<const DeviceInfo> devices) {
  const auto job = DeviceName::local("CPU", 0).job;
  return std::ranges::any_of(devices, [&job](const DeviceInfo& device) {
    return device.name.job != job;
  });
}

// "/job:ps/task:0, /job:worker/task:0", each once.
std::string tasks_of(std::span<const DeviceInfo> devices) {
  std::vector<std::string> tasks;
  for (const DeviceInfo& device : devices) {
    const DeviceName& name = device.name;
    std::string task =
        DeviceName{.job = name.job, .task = name.task}.to_string();
    if (std::ranges::find(tasks, task) == tasks.end())
      tasks.push_back(std::move(task));
  }
  return fmt::format("{}", fmt::join(tasks, ", "));
}

// Whether the caller provides its value; there is no kernel for it.
bool gets_fed(const Node& node) {
  return node.op() == "Placeholder" || node.op() == "PlaceholderV2";
}

bool has_strings(std::span<const DataType> types) {
  return std::ranges::any_of(types, [](DataType type) {
    return remove_ref(type) == DataType::kString;
  });
}

bool has_handles(std::span<const DataType> types) {
  return std::ranges::any_of(types, [](DataType type) {
    return is_ref(type) || type == DataType::kResource ||
           type == DataType::kVariant;
  });
}

bool needs_host(const Node& node) {
  return gets_fed(node) || has_strings(node.input_dtypes()) ||
         has_strings(node.output_dtypes());
}

// Writes the key for kernel lookup: the op, and types in ports and attributes.
void write_kernel_key(const Node& node, std::string& key) {
  key = node.op();
  const auto add = [&](std::span<const DataType> types) {
    key += '\0';
    for (const DataType type : types) key += char(type);
  };
  add(node.input_dtypes());
  add(node.output_dtypes());
  for (const auto& [name, value] : node.attrs()) {
    if (name.starts_with('_')) continue;  // annotations by tools
    if (const auto* type = value.get_if<DataType>()) add({type, 1});
    if (const auto* list = value.get_if<std::vector<DataType>>()) add(*list);
  }
}

}  // namespace

bool has_handles(const Node& node) {
  return has_handles(node.input_dtypes()) || has_handles(node.output_dtypes());
}

Demands::Demands(std::span<const DeviceInfo> devices,
                 const KernelCatalog& catalog, DeviceSets& sets)
    : devices_(devices), catalog_(catalog), sets_(sets) {
  std::vector<uint32_t> hosts;
  std::map<std::string, std::vector<uint32_t>> by_type;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].host_memory) hosts.push_back(uint32_t(i));
    by_type[devices[i].name.type.value_or("")].push_back(uint32_t(i));
  }
  hosts_ = sets.add(std::move(hosts));
  cpus_ = sets.add(by_type.contains("CPU") ? by_type["CPU"]
                                           : std::vector<uint32_t>());
  for (auto& [type, members] : by_type)
    types_.emplace_back(type, sets.add(std::move(members)));
}

Result<Demand> Demands::of(const Node& node) {
  TAGFLOW_ASSIGN(const DeviceSets::Id said, find_asked(node));
  Demand demand{find_able(node), said, said, needs_host(node)};
  // Objects behind handles have kernels on some accelerators only.
  if (has_handles(node))
    demand.stays_on_host =
        sets_.intersection(demand.runnable, hosts_) == demand.runnable;
  if (demand.stays_on_host && !sets_.is_empty(said) &&
      sets_.is_empty(sets_.intersection(said, hosts_)))
    demand.requested = DeviceSets::kAll;
  return demand;
}

DeviceSets::Id Demands::find_able(const Node& node) {
  if (gets_fed(node) || is_call(node)) return hosts_;
  // For nodes made by passes, kernels may depend on more than types.
  const bool is_known_by_types = !node.op().starts_with('_');
  if (is_known_by_types) {
    write_kernel_key(node, key_);
    if (const auto it = able_.find(key_); it != able_.end()) return it->second;
  }
  std::vector<uint32_t> able;
  for (const auto& [type, members] : types_) {
    if (!catalog_.has_kernel(node, type)) continue;
    const auto of_type = sets_.of(members);
    able.insert(able.end(), of_type.begin(), of_type.end());
  }
  std::ranges::sort(able);
  DeviceSets::Id set = sets_.add(std::move(able));
  if (needs_host(node)) set = sets_.intersection(set, hosts_);
  if (is_known_by_types) able_.emplace(key_, set);
  return set;
}

Result<DeviceSets::Id> Demands::find_asked(const Node& node) {
  if (node.device().empty()) return DeviceSets::kAll;
  if (const auto it = asked_.find(node.device()); it != asked_.end())
    return it->second;
  Result<DeviceName> name = DeviceName::parse(node.device());
  if (!name.ok())
    return std::move(name).status().with_prefix(
        fmt::format("[placement] node \"{}\": ", node.name()));
  std::vector<uint32_t> matching;
  for (size_t i = 0; i < devices_.size(); ++i)
    if (name->matches(devices_[i].name)) matching.push_back(uint32_t(i));
  const DeviceSets::Id set = sets_.add(std::move(matching));
  asked_.emplace(node.device(), set);
  return set;
}

std::string Demands::refusal(const Node& node, const Demand& demand) const {
  const std::string limits = limits_of(node, demand);
  if (sets_.is_empty(demand.runnable))
    return fmt::format(
        "node \"{}\" (op {}) {}, and so can run on none of the devices {}",
        node.name(), node.op(), limits, names_of(DeviceSets::kAll));
  if (sets_.is_empty(demand.requested))
    return fmt::format(
        "node \"{}\" asks for \"{}\", and there is no such device; the "
        "devices are {}; {}, and --soft-placement "
        "(SessionOptions::soft_placement) takes a CPU instead",
        node.name(), node.device(), names_of(DeviceSets::kAll),
        in_cluster(devices_)
            ? "they are those of the tasks " + tasks_of(devices_)
            : "--devices (SessionOptions::devices) makes others");
  return fmt::format("node \"{}\" asks for \"{}\", but its op {} {}",
                     node.name(), node.device(), node.op(), limits);
}

std::string Demands::excuse(const Node& node, const Demand& demand) const {
  if (sets_.is_empty(demand.requested)) return "which does not exist";
  return fmt::format("where {} cannot run (it {})", node.op(),
                     limits_of(node, demand));
}

std::string Demands::explain(const Node& node, const Demand& demand) const {
  std::string text = fmt::format("\"{}\"", node.name());
  const bool has_asked = !node.device().empty();
  if (has_asked) text += fmt::format(" asks for \"{}\"", node.device());
  if (demand.runnable != DeviceSets::kAll)
    text += fmt::format("{} (op {}) {}", has_asked ? " and" : "", node.op(),
                        limits_of(node, demand));
  return text;
}

std::string Demands::limits_of(const Node& node, const Demand& demand) const {
  if (is_call(node))
    return fmt::format(
        "calls a function that needs memory that the host reads and runs on "
        "one device, {}",
        names_of(demand.runnable));
  if (gets_fed(node)) return "needs memory that the host reads";
  std::string text;
  for (const std::string& type : catalog_.types_of(node.op())) {
    text += text.empty() ? "has kernels for " : ", ";
    text += type;
    if (!catalog_.has_kernel(node, type)) text += " (of other types)";
  }
  if (text.empty()) {
    text = "has no kernels";
    if (const std::string why = catalog_.why_missing(); !why.empty())
      text += fmt::format(" ({})", why);
  }
  if (needs_host(node)) text += " and needs memory that the host reads";
  return text;
}

std::string Demands::names_of(DeviceSets::Id set) const {
  std::string text;
  const auto devices = sets_.of(set);
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i == kShownDevices)
      return text + fmt::format(", ... ({} in all)", devices.size());
    text += (i == 0 ? "" : ", ") + devices_[devices[i]].name.to_string();
  }
  return text.empty() ? "none" : text;
}

}  // namespace tagflow::graph
