// CPU kernels for every rule.
#include "devices/kernel_registry.h"
#include "devices/kernels/training/kernel.h"
#include "devices/training_rules.h"
#include "graph/op_registry.h"

namespace tagflow::devices {

namespace {

struct RegisterRules {
  KernelRegistry& registry;

  template <template <class> class Rule>
  void add(const char* name) {
    for (const char* kind :
         {"Apply", "ResourceApply", "SparseApply", "ResourceSparseApply"}) {
      const std::string op = fmt::format("{}{}", kind, name);
      if (graph::OpRegistry::global().find_or_null(op) == nullptr) continue;
      add_kernel<Rule, float>(op);
      add_kernel<Rule, double>(op);
      add_kernel<Rule, Half>(op);
      add_kernel<Rule, BFloat16>(op);
    }
  }
  template <template <class> class Rule, class T>
  void add_kernel(const std::string& op) {
    registry.add<RuleKernel<Rule, T>>(op, {{"T", {kDataTypeOf<T>}}});
  }
};

}  // namespace

void register_training_rule_kernels(KernelRegistry& registry) {
  rules::visit_all(RegisterRules{registry});
}

}  // namespace tagflow::devices
