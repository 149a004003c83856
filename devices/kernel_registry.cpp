#include "devices/kernel_registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "graph/fault.h"

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

TypeLimits::TypeLimits(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries)
    map_[std::string(entry.attr)].assign(entry.types.begin(),
                                         entry.types.end());
}

bool is_plain_node(const graph::Node& node) {
  const auto plain = [](DataType type) {
    return is_plain(type) && !is_ref(type);
  };
  const auto& inputs = node.input_dtypes();
  const auto& outputs = node.output_dtypes();
  return std::all_of(inputs.begin(), inputs.end(), plain) &&
         std::all_of(outputs.begin(), outputs.end(), plain);
}

bool is_state_node(const graph::Node& node) {
  bool has_handle = false;
  const auto stays = [&](DataType type) {
    const bool is_object =
        type == DataType::kResource || type == DataType::kVariant;
    has_handle = has_handle || is_object || is_ref(type);
    return is_object || is_plain(remove_ref(type));
  };
  return std::ranges::all_of(node.input_dtypes(), stays) &&
         std::ranges::all_of(node.output_dtypes(), stays) && has_handle;
}

void KernelRegistry::add(KernelDef def) {
  std::unique_lock lock(mutex_);
  std::string op = def.op;
  defs_.emplace(std::move(op), std::move(def));
}

void KernelRegistry::add(std::string_view op, const TypeLimits& types,
                         KernelMaker make, bool is_async, bool takes_handles) {
  add(op, types, KernelFactory(make), is_async, takes_handles);
}

void KernelRegistry::add(std::string_view op, const TypeLimits& types,
                         KernelFactory factory, bool is_async,
                         bool takes_handles) {
  KernelDef def;
  def.op = op;
  def.types = types;
  def.factory = std::move(factory);
  def.is_async = is_async;
  def.takes_handles = takes_handles;
  add(std::move(def));
}

void KernelRegistry::inherit(std::string type, std::string from) {
  std::unique_lock lock(mutex_);
  inherits_.insert_or_assign(std::move(type), std::move(from));
}

void KernelRegistry::limit(std::string type, NodeFilter takes,
                           std::string what) {
  std::unique_lock lock(mutex_);
  limits_.insert_or_assign(std::move(type),
                           Limit{std::move(takes), std::move(what)});
}

template <class Visit>
const KernelDef* KernelRegistry::find_if(std::string_view op,
                                         std::string_view device_type,
                                         Visit visit) const {
  auto [begin, end] = defs_.equal_range(op);
  for (auto it = begin; it != end; ++it)
    if (it->second.device_type == device_type && visit(it->second))
      return &it->second;
  auto inherited = inherits_.find(device_type);
  if (inherited == inherits_.end()) return nullptr;
  for (auto it = begin; it != end; ++it)
    if (it->second.device_type == inherited->second && !it->second.is_async &&
        visit(it->second))
      return &it->second;
  return nullptr;
}

const KernelRegistry::Limit* KernelRegistry::excluding(
    const graph::Node& node, std::string_view device_type,
    bool takes_handles) const {
  auto it = limits_.find(device_type);
  if (it == limits_.end() || it->second.takes(node) ||
      (takes_handles && is_state_node(node)))
    return nullptr;
  return &it->second;
}

const KernelDef* KernelRegistry::find(const graph::Node& node,
                                      std::string_view device_type) const {
  return find_if(node.op(), device_type, [&](const KernelDef& def) {
    return serves(def, node) &&
           excluding(node, device_type, def.takes_handles) == nullptr;
  });
}

bool KernelRegistry::has_kernel(const graph::Node& node,
                                std::string_view device_type) const {
  std::shared_lock lock(mutex_);
  return find(node, device_type) != nullptr;
}

bool KernelRegistry::is_excluded(const graph::Node& node,
                                 std::string_view device_type) const {
  std::shared_lock lock(mutex_);
  return excluding(node, device_type, true) != nullptr;
}

bool KernelRegistry::has_op(std::string_view op,
                            std::string_view device_type) const {
  std::shared_lock lock(mutex_);
  return find_if(op, device_type, [](const KernelDef&) { return true; }) !=
         nullptr;
}

bool KernelRegistry::has_async(std::string_view op) const {
  std::shared_lock lock(mutex_);
  auto [begin, end] = defs_.equal_range(op);
  return std::any_of(begin, end,
                     [](const auto& def) { return def.second.is_async; });
}

std::vector<KernelDef> KernelRegistry::kernels_of(std::string_view op) const {
  std::shared_lock lock(mutex_);
  std::vector<KernelDef> kernels;
  auto [begin, end] = defs_.equal_range(op);
  for (auto it = begin; it != end; ++it) kernels.push_back(it->second);
  return kernels;
}

std::vector<std::string> KernelRegistry::types_of(std::string_view op) const {
  std::shared_lock lock(mutex_);
  return types_of_locked(op);
}

std::vector<std::string> KernelRegistry::types_of_locked(
    std::string_view op) const {
  std::set<std::string> types;
  auto [begin, end] = defs_.equal_range(op);
  for (auto it = begin; it != end; ++it) {
    types.insert(it->second.device_type);
    if (it->second.is_async) continue;
    for (const auto& [type, from] : inherits_)
      if (from == it->second.device_type) types.insert(type);
  }
  return {types.begin(), types.end()};
}

void KernelRegistry::explain_missing(std::string why) {
  std::unique_lock lock(mutex_);
  why_missing_ = std::move(why);
}

std::string KernelRegistry::why_missing() const {
  std::shared_lock lock(mutex_);
  return why_missing_;
}

Result<std::unique_ptr<Kernel>> KernelRegistry::make(
    const graph::Node& node, std::string_view device_type) const {
  std::shared_lock lock(mutex_);
  const KernelDef* def = find(node, device_type);
  if (def == nullptr) return missing(node, device_type);
  lock.unlock();  // the definition keeps its address
  // Errors name the node, whether the factory does or not.
  const auto refused = [&](const Status& why) {
    const std::string op = fmt::format("[{}] ", node.op());
    std::string_view what = why.message();
    if (what.starts_with(op)) what.remove_prefix(op.size());
    if (what.starts_with("node \"")) return why;
    return error(why.code(), "{}node \"{}\": {}", op, node.name(), what);
  };
  try {
    auto kernel = def->factory(KernelInfo(node));
    if (!kernel.ok()) return refused(kernel.status());
    if (*kernel == nullptr)
      return refused(error(Code::kInternal, "the factory made no kernel"));
    return kernel;
  } catch (...) {
    return refused(current_fault());
  }
}

Status KernelRegistry::missing(const graph::Node& node,
                               std::string_view device_type) const {
  const auto refused = [&](std::string_view what) {
    return error(Code::kUnimplemented, "[{}] node \"{}\": {}", node.op(),
                 node.name(), what);
  };
  std::set<std::string> known;
  bool any = false, takes_handles = false;
  find_if(node.op(), device_type, [&](const KernelDef& def) {
    any = true;
    takes_handles |= def.takes_handles;
    for (const auto& [attr, types] : def.types)
      for (DataType type : types) known.insert(attr + "=" + dtype_name(type));
    return false;
  });
  if (!any) {
    const auto others = types_of_locked(node.op());
    if (!others.empty())
      return refused(
          fmt::format("there is no kernel for this op on {}, only on {}",
                      device_type, fmt::join(others, ", ")));
    return refused(fmt::format("there is no kernel for this op on {}{}{}",
                               device_type, why_missing_.empty() ? "" : "; ",
                               why_missing_));
  }
  if (const Limit* limit = excluding(node, device_type, takes_handles))
    return refused(
        fmt::format("{} runs only nodes with {}", device_type, limit->what));
  std::vector<std::string> wanted;
  for (const auto& [name, value] : node.attrs())
    if (const DataType* type = value.get_if<DataType>())
      wanted.push_back(name + "=" + dtype_name(*type));
  return refused(fmt::format("no kernel on {} for {}; there are {}",
                             device_type, fmt::join(wanted, ", "),
                             fmt::join(known, ", ")));
}

}  // namespace tagflow::devices
