// SessionOptions::lossy: tensors that are sent between devices as 16 bits.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tagflow::actors {

// The lossy transfers of one cut. "*" means every edge between devices; but a
// tensor that is only fetched there keeps its precision, unless it is named.
// Thread-compatible.
class LossyTransfers {
 public:
  // The names must outlive it.
  explicit LossyTransfers(std::span<const std::string> names);

  // Whether the transfer is lossy. graph::PartitionOptions calls it for each
  // transfer of float32.
  bool is_meant(const graph::Endpoint& source, bool is_fetched);

  // After the cut: a warning for each name that matched no transfer, with the
  // names of tensors that are sent. It is not an error, since a tensor of the
  // graph need not be sent: it may be read on its own device, replaced by the
  // passes, or belong to another signature of the session. NotFound and
  // InvalidArgument, as for Graph::endpoint(), if the graph has no such tensor.
  Result<std::vector<std::string>> warnings(const graph::Graph& graph) const;

 private:
  std::span<const std::string> names_;
  std::set<std::string> sent_;   // "name:port", of float32
  std::set<std::string> taken_;  // names that matched: "name:port", "*"
};

}  // namespace tagflow::actors
