// OpRegistry::global(), which knows all families of ops.
#include "graph/op_registry.h"
#include "graph/ops/families.h"

namespace tagflow::graph {

OpRegistry& OpRegistry::global() {
  // Never destroyed: nodes of static graphs may outlive any destructor.
  static OpRegistry* registry = [] {
    auto* filled = new OpRegistry;
    for (const auto& family : op_families()) family.add(*filled);
    filled->has_own_ops_ = true;
    return filled;
  }();
  return *registry;
}

}  // namespace tagflow::graph
