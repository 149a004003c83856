// The engine's switches, which several subcommands share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "graph/limits.h"
#include "graph/status.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

// As given on the command line.
struct EngineOptions {
  int workers = 0;  // 0: one per core
  int window = 0;   // 0: that of the graph
  bool mailbox_only = false;
  std::string passes;   // empty: the default
  std::string devices;  // empty: one CPU
  bool soft_placement = false;
  std::optional<uint64_t> scatter;
  bool no_recv_scheduling = false;
  std::vector<std::string> lossy;
  bool through_wire = false;
  std::string cluster;
  std::optional<uint64_t> seed;  // none: drawn
  double timeout = 0;            // seconds; 0: none
  size_t max_nodes = graph::Limits().max_nodes;
  std::vector<std::string> allowed_ops;  // empty: all
  std::vector<std::string> denied_ops;
  std::string file_root;  // empty: ops may use all files
  bool no_files = false;  // ops may use none
  // stdout has what other programs read: what the graph prints to it goes to
  // stderr. Not a switch.
  bool keeps_stdout = false;
};

// Declares the switches on `app`, and appends a paragraph about devices to its
// footer; `options` must outlive the parsing. Values out of range are usage
// errors.
void add_engine_options(CLI::App& app, EngineOptions& options);

// Returns InvalidArgument for a pass, a device or an op that does not exist,
// and Unimplemented for a cluster; all are usage errors. Warns about options
// that would have no effect.
Result<actors::SessionOptions> to_session_options(const EngineOptions& options);

}  // namespace tagflow::apps
