// SessionOptions::lossy: what is cut to 16 bits on its way between devices.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tagflow::actors {

// Of one cut. "*" means every edge between devices; what is read by nobody
// there, but fetched, arrives as it is, unless it is named. Thread-compatible.
class LossyTransfers {
 public:
  // The names must outlive it.
  explicit LossyTransfers(std::span<const std::string> names);

  // Whether the transfer is meant, for graph::PartitionOptions, by which it is
  // asked of each transfer of float32.
  bool is_meant(const graph::Endpoint& source, bool is_fetched);

  // After the cut: a warning for each name that no transfer was taken by, with
  // what could be named instead. A tensor may be in the graph and not be sent:
  // where it is read on its own device, where the passes have replaced it, and
  // in another signature of the session. So it is no error. NotFound and
  // InvalidArgument, as Graph::endpoint(), where it is not even in the graph.
  Result<std::vector<std::string>> warnings(const graph::Graph& graph) const;

 private:
  std::span<const std::string> names_;
  std::set<std::string> sent_;   // "name:port", of float32
  std::set<std::string> taken_;  // names that meant some: "name:port", "*"
};

}  // namespace tagflow::actors
