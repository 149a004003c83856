#include "devices/kernel_registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "devices/cpu/kernels.h"

namespace tagflow::devices {
namespace {

bool serves(const KernelDef& def, const graph::Node& node) {
  for (const auto& [attr, allowed] : def.types) {
    auto it = node.attrs().find(attr);
    if (it == node.attrs().end()) return false;
    const DataType* type = it->second.get_if<DataType>();
    if (type == nullptr || std::ranges::find(allowed, *type) == allowed.end())
      return false;
  }
  return true;
}

}  // namespace

KernelRegistry& KernelRegistry::global() {
  static KernelRegistry* registry = [] {
    auto* made = new KernelRegistry;
    register_cpu_kernels(*made);
    return made;
  }();
  return *registry;
}

void KernelRegistry::add(KernelDef def) {
  std::unique_lock lock(mutex_);
  std::string op = def.op;
  defs_.emplace(std::move(op), std::move(def));
}

const KernelDef* KernelRegistry::find(const graph::Node& node,
                                      std::string_view device_type) const {
  std::shared_lock lock(mutex_);
  auto [begin, end] = defs_.equal_range(node.op());
  for (auto it = begin; it != end; ++it)
    if (it->second.device_type == device_type && serves(it->second, node))
      return &it->second;
  return nullptr;
}

bool KernelRegistry::has_op(std::string_view op,
                            std::string_view device_type) const {
  std::shared_lock lock(mutex_);
  auto [begin, end] = defs_.equal_range(op);
  return std::any_of(begin, end, [&](const auto& entry) {
    return entry.second.device_type == device_type;
  });
}

std::vector<KernelDef> KernelRegistry::kernels_of(std::string_view op) const {
  std::shared_lock lock(mutex_);
  std::vector<KernelDef> kernels;
  auto [begin, end] = defs_.equal_range(op);
  for (auto it = begin; it != end; ++it) kernels.push_back(it->second);
  return kernels;
}

Result<std::unique_ptr<Kernel>> KernelRegistry::make(
    const graph::Node& node, std::string_view device_type) const {
  if (const KernelDef* def = find(node, device_type))
    return def->factory(KernelInfo(node));
  if (!has_op(node.op(), device_type))
    return error(Code::kUnimplemented,
                 "[{}] node \"{}\": there is no kernel for this op on {}",
                 node.op(), node.name(), device_type);
  std::vector<std::string> wanted;
  for (const auto& [name, value] : node.attrs())
    if (const DataType* type = value.get_if<DataType>())
      wanted.push_back(name + "=" + dtype_name(*type));
  std::set<std::string> known;
  std::shared_lock lock(mutex_);
  auto [begin, end] = defs_.equal_range(node.op());
  for (auto it = begin; it != end; ++it)
    for (const auto& [attr, types] : it->second.types)
      for (DataType type : types) known.insert(attr + "=" + dtype_name(type));
  return error(Code::kUnimplemented,
               "[{}] node \"{}\": no kernel on {} for {}; there are {}",
               node.op(), node.name(), device_type, fmt::join(wanted, ", "),
               fmt::join(known, ", "));
}

}  // namespace tagflow::devices
