// What the commands that take a signature have in common: a graph, and what to
// do with it.
#pragma once

#include <string>
#include <vector>

#include "actors/session/session.h"
#include "apps/common/engine_options.h"
#include "apps/common/exit_code.h"
#include "apps/common/feed.h"
#include "apps/common/owned_session.h"
#include "apps/common/results.h"
#include "graph/file/queue_runner.h"
#include "graph/file/saved_state.h"
#include "graph/graph.h"
#include "graph/placement/cost_model.h"

namespace tagflow::apps {

// As given on the command line.
struct SignatureOptions {
  std::string graph;
  std::vector<std::string> op_libraries;
  std::string name;  // of a signature of the file; or empty
  std::vector<std::string> feeds;
  int64_t batch = 0;  // rows of feeds by rows; 0: one, without its dimension
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::string costs;  // a file of measured ones; "" for none
  // It need not be there yet: it is written afterwards.
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
// Says in the help of --feed that its value may be left out.
void make_values_optional(CLI::App& app);

// That each fetch can be the name of a tensor: else a usage error.
Status check_fetches(const std::vector<std::string>& fetches);

// A session with the graph in it, the feeds' values, and what to fetch; or why
// not.
struct Prepared {
  OwnedSession session;
  std::vector<actors::Feed> feeds;  // of step 1
  std::vector<LoadedFeeds::ByRows> by_rows;
  // By their names in the graph, and by those that the user has for them.
  std::vector<std::string> fetches;
  std::vector<FetchName> names;
  std::vector<std::string> targets;
  std::vector<graph::QueueRunnerDef> queue_runners;  // of the file
  graph::SavedState state;                           // of the file
  graph::CostModel costs;  // of the file of costs; the session knows them
  Failure failure;         // its code is kOk on success
};

// What a command does with it.
enum class Purpose : uint8_t {
  kRun,     // what is asked for; nothing is a usage error
  kRunAll,  // the same, or, where nothing is asked for, all that nobody reads
  kLook,  // as kRunAll, but nothing runs: feeds need neither be nor have values
};
// Checks the command line before it opens any file, but for what op libraries
// may add to: they are loaded first.
Prepared prepare(const SignatureOptions& options,
                 Purpose purpose = Purpose::kRun);

// What runs it; `values` get those of its feeds in step 1. Errors of
// Session::make_callable().
Result<actors::Callable> make_callable(const Prepared& prepared,
                                       std::vector<Tensor>& values);

}  // namespace tagflow::apps
