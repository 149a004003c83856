// A family of ops has one name in all trees: cmake/families.txt.
#include "autodiff/rules/families.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "devices/kernels/families.h"
#include "graph/ops/families.h"

using namespace tagflow;  // NOLINT: tests

namespace {

// The family that defines each op.
const std::map<std::string, std::string>& families_of_ops() {
  static const auto kFamilies = [] {
    std::map<std::string, std::string> families;
    for (const auto& family : graph::op_families()) {
      graph::OpRegistry registry;
      family.add(registry);
      for (const std::string& op : registry.names())
        families.emplace(op, family.name);
    }
    return families;
  }();
  return kFamilies;
}

}  // namespace

TEST_CASE("families: each built-in op is of one family") {
  size_t count = 0;
  for (const auto& family : graph::op_families()) {
    graph::OpRegistry registry;
    family.add(registry);
    CHECK(!registry.names().empty());
    count += registry.names().size();
  }
  CHECK(count == families_of_ops().size());
}

TEST_CASE("families: an op's kernels are in the folder of its family") {
  // Ops whose kernels for variants are of the family that has the values.
  const std::set<std::string> also_of_containers = {"AddN", "ZerosLike"};
  std::set<std::string> elsewhere;
  for (const auto& family : devices::kernel_families()) {
    devices::KernelRegistry registry;
    family.add(registry);
    for (const auto& [op, home] : families_of_ops())
      if (home != family.name && !registry.kernels_of(op).empty())
        elsewhere.insert(op + " of " + home + " in " +
                         std::string(family.name));
  }
  for (const std::string& op : also_of_containers)
    elsewhere.erase(op + " of " + families_of_ops().at(op) + " in containers");
  for (const std::string& op : elsewhere) FAIL_CHECK(op);
}

TEST_CASE("families: an op's rule is in the file of its family") {
  for (const auto& family : autodiff::rule_families()) {
    autodiff::RuleTable table;
    family.add(table);
    for (const std::string& op : table.ops()) {
      CAPTURE(op);
      const auto home = families_of_ops().find(op);
      REQUIRE(home != families_of_ops().end());
      CHECK(home->second == family.name);
    }
  }
}

TEST_CASE("families: those with kernels or rules have ops") {
  std::set<std::string_view> with_ops;
  for (const auto& family : graph::op_families()) with_ops.insert(family.name);
  for (const auto& family : devices::kernel_families())
    CHECK(with_ops.contains(family.name));
  for (const auto& family : autodiff::rule_families())
    CHECK(with_ops.contains(family.name));
}
