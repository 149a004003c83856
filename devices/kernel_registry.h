// The table of kernels, by op, device type and types of attributes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <type_traits>
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
  bool is_async = false;  // what the factory makes are AsyncKernels
  // Inputs and outputs may be handles, of variables, whose contents are in the
  // memory of the device.
  bool takes_handles = false;
};

// Whether a node is of a kind, by its op and its types.
using NodeFilter = std::function<bool(const graph::Node&)>;
// All that it takes and gives can be copied as bytes: what the memory of an
// accelerator holds.
bool is_plain_node(const graph::Node& node);
// That is so but for handles, references and variants, of which it has one:
// these stay with the host, and what they stand for, or hold, is on the device.
bool is_state_node(const graph::Node& node);

// Thread-safe. Kernels are never removed.
class KernelRegistry {
 public:
  // With every kernel of devices/cpu; programs add theirs to it.
  static KernelRegistry& global();
  KernelRegistry() = default;

  // Of several kernels for the same op, device type and types, the one that was
  // added first is used; a later one is ignored without an error.
  void add(KernelDef def);
  // A kernel class constructible from const KernelInfo&. Where a class can
  // refuse its node, give it `static Result<std::unique_ptr<Kernel>>
  // make(const KernelInfo&)` instead. One with `static constexpr bool
  // kTakesHandles = true` is as KernelDef::takes_handles says.
  template <class K>
  void add(std::string op,
           std::map<std::string, std::vector<DataType>> types = {});

  // Devices of `type` run the synchronous kernels added for `from` too, where
  // there is none of their own.
  void inherit(std::string type, std::string from);
  // Devices of the type run only nodes that `takes` accepts, which are those
  // "with WHAT": for messages; and those of is_state_node() where the kernel
  // takes handles. By default they run all. Control flow is not excepted; it
  // takes handles.
  void limit(std::string type, NodeFilter takes, std::string what);

  // Makes the kernel of a node. Unimplemented where the op has none on this
  // device type, or none for these types; the message lists what there is.
  // What the factory throws is an error, too; none are null.
  Result<std::unique_ptr<Kernel>> make(const graph::Node& node,
                                       std::string_view device_type) const;
  // Whether make() would find a kernel.
  bool has_kernel(const graph::Node& node, std::string_view device_type) const;
  // Whether a limit of the device type excludes the node, which is one of
  // control flow.
  bool is_excluded(const graph::Node& node, std::string_view device_type) const;
  // Whether any kernel of the op exists on the device type.
  bool has_op(std::string_view op, std::string_view device_type) const;
  // Whether any kernel of the op, on whatever device, is asynchronous.
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

  // Calls `visit` with each kernel of the op on the device type, own ones
  // first, until it gives true. All below: REQUIRES the mutex.
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
};

template <class K>
void KernelRegistry::add(std::string op,
                         std::map<std::string, std::vector<DataType>> types) {
  KernelDef def;
  def.op = std::move(op);
  def.types = std::move(types);
  def.is_async = std::is_base_of_v<AsyncKernel, K>;
  if constexpr (requires { K::kTakesHandles; })
    def.takes_handles = K::kTakesHandles;
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
