// The table of kernels, by op, device type and types of attributes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "devices/kernel.h"

namespace tagflow::devices {

using KernelFactory =
    std::function<Result<std::unique_ptr<Kernel>>(const KernelInfo&)>;

// A kernel serves the nodes of its op whose type attributes have one of the
// allowed values.
struct KernelDef {
  std::string op;
  std::string device_type = "CPU";
  // Attribute -> types it may have. Attributes not named may be anything.
  std::map<std::string, std::vector<DataType>> types;
  KernelFactory factory;
};

// Thread-safe. Kernels are never removed.
class KernelRegistry {
 public:
  // With every kernel of devices/cpu; programs add theirs to it.
  static KernelRegistry& global();
  KernelRegistry() = default;

  void add(KernelDef def);
  // A kernel class constructible from const KernelInfo&. Where a class can
  // refuse its node, give it `static Result<std::unique_ptr<Kernel>>
  // make(const KernelInfo&)` instead.
  template <class K>
  void add(std::string op,
           std::map<std::string, std::vector<DataType>> types = {});

  // Makes the kernel of a node. Unimplemented where the op has none on this
  // device type, or none for these types; the message lists what there is.
  Result<std::unique_ptr<Kernel>> make(const graph::Node& node,
                                       std::string_view device_type) const;
  // Whether any kernel of the op exists on the device type.
  bool has_op(std::string_view op, std::string_view device_type) const;
  // The kernels of the op, in the order in which they were added.
  std::vector<KernelDef> kernels_of(std::string_view op) const;

 private:
  const KernelDef* find(const graph::Node& node,
                        std::string_view device_type) const;
  mutable std::shared_mutex mutex_;
  std::multimap<std::string, KernelDef, std::less<>> defs_;
};

template <class K>
void KernelRegistry::add(std::string op,
                         std::map<std::string, std::vector<DataType>> types) {
  KernelDef def;
  def.op = std::move(op);
  def.types = std::move(types);
  def.factory = [](const KernelInfo& info) -> Result<std::unique_ptr<Kernel>> {
    if constexpr (requires { K::make(info); }) {
      return K::make(info);
    } else {
      return std::unique_ptr<Kernel>(std::make_unique<K>(info));
    }
  };
  add(std::move(def));
}

}  // namespace tagflow::devices
