// The engine's switches, which several subcommands share.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/session/session.h"
#include "graph/limits.h"
#include "graph/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tagflow::apps {

struct Reconnection;  // apps/shared/runs/cluster_connection.h
class RunFigures;     // apps/shared/runs/run_figures.h

// Files in PEM, as given on the command line; empty: those that the cluster
// file names.
struct TlsSwitches {
  std::string ca, certificate, key;
};

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
  // Of a cluster: ClusterOptions::tolerates_torn_state.
  bool tolerates_torn_state = false;
  // A cluster file, or the address of a member; empty: this process.
  std::string cluster;
  std::string secret_file;  // empty: the one that the cluster file names
  TlsSwitches tls;
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
  // The workers of the cluster, from connect_cluster(). Not a switch.
  std::shared_ptr<actors::Backend> backend;
  // If the command survives the loss of workers. Not a switch.
  std::shared_ptr<Reconnection> reconnection;
  // Is told which workers the command runs on; may be null. Not a switch.
  std::shared_ptr<RunFigures> figures;
};

// Declares the switches on `app`, and appends a paragraph about devices to its
// footer; `options` must outlive the parsing. Values out of range are usage
// errors.
void add_engine_options(CLI::App& app, EngineOptions& options);

// One of them, for commands that run nothing; and what it says. InvalidArgument
// for what is not a number.
CLI::Option* add_timeout_option(CLI::App& app, double& seconds,
                                const std::string& help);
Result<std::chrono::nanoseconds> to_timeout(double seconds);

// Some of them, for workers: what graphs may do.
void add_policy_options(CLI::App& app, EngineOptions& options);
// InvalidArgument, a usage error, for an op or a folder that does not exist.
Result<graph::OpPolicy> to_policy(const EngineOptions& options);
// Prints to stderr what a graph prints.
void print_to_stderr(devices::PrintStream stream, std::string_view text);

// Returns InvalidArgument for a pass, a device or an op that does not exist, a
// usage error. Warns about options that would have no effect. REQUIRES: if they
// name a cluster, connect_cluster() has connected them.
Result<actors::SessionOptions> to_session_options(const EngineOptions& options);

}  // namespace tagflow::apps
