// The table of kernels, by op, device type and type attributes.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "devices/kernel.h"

namespace tagflow::devices {

using KernelFactory =
    std::function<Result<std::unique_ptr<Kernel>>(const KernelInfo&)>;
using KernelMaker = Result<std::unique_ptr<Kernel>> (*)(const KernelInfo&);

// The types that type attributes may have, by attribute. Attributes that are
// not named may have any type. The constructor is not inline: maps that were
// built in place were much of the code of hundreds of registrations.
class TypeLimits {
 public:
  using Map = std::map<std::string, std::vector<DataType>>;
  // An argument of the constructor: it refers to the name and the types.
  struct Entry {
    Entry(std::string_view attr, std::initializer_list<DataType> types)
        : attr(attr), types(types.begin(), types.size()) {}
    Entry(std::string_view attr, const std::vector<DataType>& types)
        : attr(attr), types(types) {}

    std::string_view attr;
    std::span<const DataType> types;
  };

  TypeLimits() = default;
  TypeLimits(std::initializer_list<Entry> entries);

  Map::const_iterator find(const std::string& attr) const {
    return map_.find(attr);
  }
  Map::const_iterator begin() const { return map_.begin(); }
  Map::const_iterator end() const { return map_.end(); }

 private:
  Map map_;
};

// A kernel serves the nodes of its op whose type attributes have one of the
// allowed values.
struct KernelDef {
  std::string op;
  std::string device_type = "CPU";
  TypeLimits types;
  KernelFactory factory;
  bool is_async = false;  // the factory makes AsyncKernels
  // Inputs and outputs may be handles of variables whose contents are in the
  // memory of the device.
  bool takes_handles = false;
};

// Whether a node is of a kind, by its op and its types.
using NodeFilter = std::function<bool(const graph::Node&)>;
// All its inputs and outputs can be copied as bytes, so an accelerator's memory
// can hold them.
bool is_plain_node(const graph::Node& node);
// As is_plain_node(), except for handles, references and variants, of which it
// has at least one: these stay on the host, while their contents are on the
// device.
bool is_state_node(const graph::Node& node);

// Thread-safe. Kernels are never removed.
class KernelRegistry {
 public:
  // With every kernel of devices/kernels; programs add theirs to it.
  static KernelRegistry& global();
  KernelRegistry() = default;

  // Of several kernels for the same op, device type and types, the one that was
  // added first is used; a later one is ignored without an error.
  void add(KernelDef def);
  // Adds a kernel class constructible from const KernelInfo&. A class that can
  // reject its node has `static Result<std::unique_ptr<Kernel>> make(const
  // KernelInfo&)` instead. `static constexpr bool kTakesHandles = true` in the
  // class sets KernelDef::takes_handles.
  template <class K>
  void add(std::string_view op, const TypeLimits& types = {});
  // As add() above, for a class whose constructor or make() takes more values
  // after the KernelInfo, such as the loops for some types of elements.
  template <class K, class... Values>
  requires(sizeof...(Values) > 0) void add(std::string_view op,
                                           const TypeLimits& types,
                                           Values... values);

  // Devices of `type` also run the synchronous kernels added for `from`, if
  // they have none of their own.
  void inherit(std::string type, std::string from);
  // Restricts devices of the type to nodes that `takes` accepts, and to those
  // of is_state_node() if the kernel takes handles. Messages call these the
  // nodes "with WHAT". By default devices run all nodes. Control flow is
  // restricted too; it takes handles.
  void limit(std::string type, NodeFilter takes, std::string what);

  // The reason why an op may have no kernel at all; messages contain it.
  void explain_missing(std::string why);
  std::string why_missing() const;

  // Makes the kernel of a node. Unimplemented if the op has no kernel on
  // this device type, or none for these types; the message lists the existing
  // ones. Factory exceptions are errors, too. The result is never null.
  Result<std::unique_ptr<Kernel>> make(const graph::Node& node,
                                       std::string_view device_type) const;
  // Whether make() would find a kernel.
  bool has_kernel(const graph::Node& node, std::string_view device_type) const;
  // Whether a limit of the device type excludes the node, which is a control
  // flow node.
  bool is_excluded(const graph::Node& node, std::string_view device_type) const;
  // Whether any kernel of the op exists on the device type.
  bool has_op(std::string_view op, std::string_view device_type) const;
  // Whether any kernel of the op, on any device, is asynchronous.
  bool has_async(std::string_view op) const;
  // The kernels of the op, in the order in which they were added.
  std::vector<KernelDef> kernels_of(std::string_view op) const;
  // The device types with any kernel of the op, inherited ones included.
  std::vector<std::string> types_of(std::string_view op) const;

 private:
  struct Limit {
    NodeFilter takes;
    std::string what;
  };

  template <class K, class... Values>
  static Result<std::unique_ptr<Kernel>> make_kernel(const KernelInfo& info,
                                                     const Values&... values);
  template <class K>
  static constexpr bool takes_handles();
  // For a function: less code in each registration than a KernelFactory.
  void add(std::string_view op, const TypeLimits& types, KernelMaker make,
           bool is_async, bool takes_handles);
  void add(std::string_view op, const TypeLimits& types, KernelFactory factory,
           bool is_async, bool takes_handles);

  // Calls `visit` with each kernel of the op on the device type, own ones
  // first, until it returns true. All below: REQUIRES the mutex.
  template <class Visit>
  const KernelDef* find_if(std::string_view op, std::string_view device_type,
                           Visit visit) const;
  const KernelDef* find(const graph::Node& node,
                        std::string_view device_type) const;
  const Limit* excluding(const graph::Node& node, std::string_view device_type,
                         bool takes_handles) const;
  std::vector<std::string> types_of_locked(std::string_view op) const;
  Status missing(const graph::Node& node, std::string_view device_type) const;

  mutable std::shared_mutex mutex_;
  std::multimap<std::string, KernelDef, std::less<>> defs_;
  std::map<std::string, std::string, std::less<>> inherits_;  // type -> from
  std::map<std::string, Limit, std::less<>> limits_;          // by type
  std::string why_missing_;
};

template <class K, class... Values>
Result<std::unique_ptr<Kernel>> KernelRegistry::make_kernel(
    const KernelInfo& info, const Values&... values) {
  if constexpr (requires { K::make(info, values...); }) {
    return K::make(info, values...);
  } else {
    return std::unique_ptr<Kernel>(std::make_unique<K>(info, values...));
  }
}

template <class K>
constexpr bool KernelRegistry::takes_handles() {
  if constexpr (requires { K::kTakesHandles; }) return K::kTakesHandles;
  return false;
}

template <class K>
void KernelRegistry::add(std::string_view op, const TypeLimits& types) {
  add(op, types, &make_kernel<K>, std::is_base_of_v<AsyncKernel, K>,
      takes_handles<K>());
}

template <class K, class... Values>
requires(sizeof...(Values) > 0) void KernelRegistry::add(
    std::string_view op, const TypeLimits& types, Values... values) {
  add(
      op, types,
      [values...](const KernelInfo& info) {
        return make_kernel<K>(info, values...);
      },
      std::is_base_of_v<AsyncKernel, K>, takes_handles<K>());
}

}  // namespace tagflow::devices
