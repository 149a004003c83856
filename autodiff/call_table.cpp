#include "autodiff/call_table.h"

#include "graph/functions/extended.h"

namespace tagflow::autodiff {

const CalledFunction* CallTable::find(const graph::Node& call) const {
  if (functions.empty() || !graph::has_own_frame(call)) return nullptr;
  const auto it = call.attrs().find("f");
  const auto* reference =
      it == call.attrs().end() ? nullptr : it->second.get_if<FunctionRef>();
  if (reference == nullptr) return nullptr;
  for (const CalledFunction& called : functions)
    if (reference->name == called.extended ||
        (reference->name == called.function.name &&
         reference->attrs == called.function.attrs))
      return &called;
  return nullptr;
}

CalledFunction* CallTable::find(const graph::Node& call) {
  return const_cast<CalledFunction*>(std::as_const(*this).find(call));
}

}  // namespace tagflow::autodiff
