#include "graph/partition/unreceived.h"

#include <algorithm>
#include <set>
#include <string>

#include "graph/partition/transfer_name.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

std::string key_of(const Node& node) {
  return transfer_name_of(node).value().key;
}

std::set<std::string> received(const std::vector<Partition>& partitions) {
  std::set<std::string> keys;
  for (const Partition& partition : partitions)
    for (const Node* node : partition.program.graph.nodes())
      if (node->op() == "_Recv") keys.insert(key_of(*node));
  return keys;
}

}  // namespace

void drop_unreceived(std::vector<Partition>& partitions) {
  // A pass may leave the last reader without one of its own.
  for (Partition& partition : partitions) sweep(partition.program);
  for (bool changed = true; changed;) {
    changed = false;
    const std::set<std::string> keys = received(partitions);
    for (Partition& partition : partitions) {
      // What is swept may be a Recv, whose Send is the next to go.
      const size_t gone =
          std::erase_if(partition.program.targets, [&](const Node* target) {
            return target->op() == "_Send" && !keys.contains(key_of(*target));
          });
      if (gone == 0) continue;
      sweep(partition.program);
      changed = true;
    }
  }
  std::erase_if(partitions, [](const Partition& partition) {
    return partition.program.graph.size() == 0;
  });
}

}  // namespace tagflow::graph
