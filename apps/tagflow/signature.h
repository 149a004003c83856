// Options and preparation for all commands that take a signature of a graph.
#pragma once

#include <string>
#include <vector>

#include "actors/session/session.h"
#include "apps/shared/program/exit_code.h"
#include "apps/shared/program/owned_session.h"
#include "apps/shared/runs/engine_options.h"
#include "apps/tagflow/model/feed.h"
#include "apps/tagflow/model/results.h"
#include "graph/file/queue_runner.h"
#include "graph/file/saved_state.h"
#include "graph/node.h"
#include "graph/placement/cost_model.h"

namespace tagflow::apps {

// As given on the command line.
struct SignatureOptions {
  std::string graph;
  std::vector<std::string> op_libraries;
  std::string name;  // of a signature in the file; or empty
  std::vector<std::string> feeds;
  int64_t batch = 0;  // rows of feeds by rows; 0: one, without its dimension
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::string costs;  // a file of measured costs; "" for none
  // The file need not exist yet: it is written afterwards.
  bool makes_costs = false;
  EngineOptions engine;
};

// Declares GRAPH, --op-library, --signature, --feed, --batch, --fetch,
// --target,
// --costs and the engine's switches; `options` must outlive the parsing.
void add_signature_options(CLI::App& app, SignatureOptions& options);
// Some of these alone.
void add_graph_option(CLI::App& app, std::string& path);
void add_name_option(CLI::App& app, std::string& name);
void add_fetch_option(CLI::App& app, std::vector<std::string>& fetches);
// Adds to the help of --feed that its value may be left out.
void make_values_optional(CLI::App& app);

// Checks that each fetch can be the name of a tensor, or returns a usage error.
Status check_fetches(const std::vector<std::string>& fetches);

// A session with the graph, the feeds' values, and the fetches, or a failure.
struct Prepared {
  OwnedSession session;
  std::vector<actors::Feed> feeds;  // of step 1
  std::vector<LoadedFeeds::ByRows> by_rows;
  // By their names in the graph, and by the user's names.
  std::vector<std::string> fetches;
  std::vector<FetchName> names;
  std::vector<std::string> targets;
  std::vector<graph::QueueRunnerDef> queue_runners;  // of the file
  graph::SavedState state;                           // of the file
  graph::CostModel costs;  // of the file of costs; the session knows them
  bool has_costs = false;  // and some are of nodes of the graph
  Failure failure;         // its code is kOk on success
};

// What a command does with the signature.
enum class Purpose : uint8_t {
  kRun,     // what is requested; nothing is a usage error
  kRunAll,  // the same, or, by default, all outputs without readers
  kLook,  // like kRunAll, but nothing runs: feeds and their values are optional
};
// Loads op libraries, and then checks the command line before it opens any
// other file.
Prepared prepare(const SignatureOptions& options,
                 Purpose purpose = Purpose::kRun);

// A callable of the signature; `values` receives its feeds in step 1. Returns
// errors of Session::make_callable().
Result<actors::Callable> make_callable(const Prepared& prepared,
                                       std::vector<Tensor>& values);

}  // namespace tagflow::apps
