// An entry as TAGFLOW_OP_LIBRARY defines it, except for one value, which is
// that of a library for another tagflow.
#include "graph/op_library.h"

using namespace tagflow::graph;  // NOLINT: a library

namespace {

#ifdef OTHER_VERSION
constexpr const char* kVersion = "0.0";
#else
constexpr const char* kVersion = TAGFLOW_OP_LIBRARY_VERSION;
#endif

#ifdef OTHER_STANDARD_LIBRARY
constexpr size_t kOpDefSize = sizeof(OpDef) - 1;
#else
constexpr size_t kOpDefSize = sizeof(OpDef);
#endif

OpRegistry& registry() {
#ifdef OTHER_REGISTRY
  static OpRegistry own;
  return own;
#else
  return OpRegistry::global();
#endif
}

tagflow::Status add_ops() { return {}; }

}  // namespace

extern "C" {
extern const OpLibrary tagflow_op_library;
}
const OpLibrary tagflow_op_library = {kVersion, kOpDefSize, registry, add_ops};
