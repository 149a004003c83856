#include "apps/tagflow/signature.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

#include "actors/checkpoint/saved_model.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/shared/runs/watched_run.h"
#include "apps/tagflow/model/cost_file.h"
#include "apps/tagflow/model/feed.h"
#include "apps/tagflow/model/model.h"
#include "apps/tagflow/model/op_libraries.h"
#include "apps/tagflow/model/summary.h"
#include "graph/analysis/prune.h"
#include "graph/budget.h"
#include "graph/counted.h"
#include "graph/file/model_scope.h"
#include "graph/function.h"
#include "graph/function_uses.h"
#include "graph/node_name.h"
#include "graph/status_text.h"

namespace tagflow::apps {
namespace {

constexpr const char* kValueHelp =
    R"(A VALUE is a number, true, false, a string in double quotes, or lists of these,
as JSON: --feed 'x=[[1, 2], [3, 4]]'. JSON cannot express some values; write
them as "nan", "inf", "-inf", {"re": 1, "im": 2}, or {"base64": "/w=="} (a string
that is not UTF-8). A .json file has such a value, or was written by --out:
{"dtype": "string", "shape": [1], "base64": ["YQ=="]})";

// The texts of --feed; each is checked before any file is opened.
Result<std::vector<FeedText>> parse_feeds(const std::vector<std::string>& texts,
                                          bool need_values) {
  std::vector<FeedText> feeds;
  for (const std::string& text : texts) {
    TAGFLOW_ASSIGN(FeedText feed, parse_feed(text, need_values));
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

// The inputs of the signature that must be fed and are not.
Status check_inputs(const Model& model, const NamedSignature& signature,
                    const std::vector<FeedText>& feeds) {
  std::vector<std::string> missing;
  for (const auto& [name, tensor] : signature.second.inputs) {
    const Result<graph::Endpoint> found = model.graph.endpoint(tensor);
    if (!found.ok() || found->node->op() != "Placeholder") continue;
    const std::string port = found->to_string();
    const auto is_it = [&](const FeedText& feed) { return feed.port == port; };
    if (std::ranges::any_of(feeds, is_it)) continue;
    const TensorNote note = note_of(*found);
    missing.push_back(
        fmt::format("\"{}\" ({}{})", name, note.dtype, note.shape));
  }
  if (missing.empty()) return {};
  return invalid_argument(
      "[--feed] signature \"{}\" needs values for these inputs: {}",
      signature.first, fmt::join(missing, ", "));
}

// Names all unknown ops of the functions that the run needs; the session would
// name the first one.
Status check_needed_ops(const Model& model, const Prepared& prepared) {
  const graph::Graph& graph = model.graph;
  if (graph.library().empty()) return {};
  std::vector<graph::Endpoint> feeds, fetches;
  std::vector<graph::Node*> targets;
  for (const auto& [port, value] : prepared.feeds) {
    TAGFLOW_ASSIGN(feeds.emplace_back(), graph.endpoint(port));
  }
  for (const std::string& fetch : prepared.fetches) {
    TAGFLOW_ASSIGN(fetches.emplace_back(), graph.endpoint(fetch));
  }
  for (const std::string& target : prepared.targets) {
    if (graph.find(target) != nullptr) targets.push_back(graph.find(target));
  }
  const std::vector<graph::Node*> callers =
      graph::needed_nodes(graph, fetches, targets, feeds);
  return graph::check_ops(
      {}, graph::reached_functions(callers, graph.library()), graph.library());
}

// The outputs of nodes that have no readers, and that no node waits for.
std::vector<std::string> names_of_unread(const graph::Graph& graph) {
  graph::NodeSet read;
  for (const graph::Node* node : graph.nodes()) {
    for (const graph::Endpoint& input : node->inputs())
      if (input.node != nullptr) read.insert(*input.node);
    for (const graph::Node* input : node->control_inputs()) read.insert(*input);
  }
  std::vector<std::string> names;
  for (const graph::Node* node : graph.nodes())
    if (!read.contains(*node)) names.push_back(node->name());
  return names;
}

// Resolves the names of the feeds and fetches into `prepared`, and, if
// nothing is requested, the signature's outputs.
Status resolve(const Model& model, const SignatureOptions& options,
               Purpose purpose, std::vector<FeedText>& feeds,
               Prepared& prepared) {
  TAGFLOW_ASSIGN(const NamedSignature* signature,
                 choose_signature(model, options.name));
  for (FeedText& feed : feeds) {
    Result<TensorName> found =
        find_tensor(model, signature, &graph::Signature::inputs, feed.label);
    if (!found.ok()) return found.status().with_prefix("[--feed] ");
    feed.port = found->tensor;
  }
  std::vector<TensorName> fetches;
  for (const std::string& text : options.fetches) {
    Result<TensorName> found =
        find_tensor(model, signature, &graph::Signature::outputs, text);
    if (!found.ok()) return found.status().with_prefix("[--fetch] ");
    fetches.push_back(std::move(found).value());
  }
  for (const std::string& target : options.targets) {
    const std::string why = model.graph.find(target) == nullptr
                                ? explain_inner_name(model.graph, target)
                                : "";
    if (!why.empty())
      return error(Code::kNotFound, "[--target] [graph] no node \"{}\"{}",
                   target, why);
  }
  if (fetches.empty() && options.targets.empty() && signature != nullptr) {
    if (purpose != Purpose::kLook)
      TAGFLOW_RETURN_IF_ERROR(check_inputs(model, *signature, feeds));
    TAGFLOW_ASSIGN(fetches, outputs_of(model, *signature));
  }
  for (TensorName& fetch : fetches) {
    prepared.fetches.push_back(std::move(fetch.tensor));
    prepared.names.push_back(std::move(fetch.name));
  }
  prepared.targets = options.targets;
  if (purpose != Purpose::kRun && prepared.fetches.empty() &&
      prepared.targets.empty())
    prepared.targets = names_of_unread(model.graph);
  return {};
}

Status nothing_to_run(const Model& model) {
  const std::vector<std::string> names = names_of_signatures(model);
  return invalid_argument(
      "[run] there is nothing to run: add --fetch or --target{}",
      names.empty()
          ? ""
          : fmt::format(", or --signature: the file has the signatures \"{}\"",
                        fmt::join(names, "\", \"")));
}

// Restores the variables from the files beside the graph. The signature is
// placed before, so that they are on the devices that use them.
Failure load_state(const Model& model, const std::string& path,
                   const Prepared& prepared) {
  std::vector<std::string> feeds;
  for (const auto& [port, value] : prepared.feeds) feeds.push_back(port);
  Status placed =
      prepared.session->make_callable(feeds, prepared.fetches, prepared.targets)
          .status();
  if (!placed.ok()) return run_time_error(std::move(placed));
  const WatchedRun watched(*prepared.session);
  actors::RunOptions run;
  run.cancel = watched.token();
  Status loaded =
      actors::load_saved_state(*prepared.session, model.state, path, run);
  if (loaded.code() == Code::kNotFound) return file_error(std::move(loaded));
  return watched.failure_of(std::move(loaded));
}

Failure read_costs_of(const SignatureOptions& options, Prepared& prepared) {
  if (options.costs.empty()) return {};
  Result<graph::CostModel> costs = read_costs(options.costs);
  if (costs.ok()) {
    prepared.costs = *std::move(costs);
    return {};
  }
  Status status = costs.status();
  if (status.code() == Code::kNotFound && options.makes_costs) return {};
  return file_error(std::move(status).with_prefix("[--costs] "));
}

// Whether it is the name of a node, or of one that is made of the body of a
// function: its name begins with that of the function or its caller.
bool is_of_graph(const graph::Graph& graph,
                 const std::set<std::string, std::less<>>& functions,
                 std::string_view name) {
  for (size_t end = name.find('/'); end != name.npos;
       end = name.find('/', end + 1)) {
    const std::string_view start = name.substr(0, end);
    if (graph.find(start) != nullptr || functions.contains(start)) return true;
  }
  return graph.find(name) != nullptr;
}

// Whether some costs are of nodes of the graph; warns if none are. A file of
// another graph is easily taken, and has no effect.
bool check_costs(const graph::CostModel& costs, const graph::Graph& graph) {
  const std::vector<graph::CostModel::NodeCosts> nodes = costs.node_costs();
  std::set<std::string, std::less<>> functions;
  for (const graph::FunctionDef* function : graph.library().functions())
    functions.insert(graph::to_node_name(function->name()));
  const bool is_any =
      std::ranges::any_of(nodes, [&](const graph::CostModel::NodeCosts& node) {
        return is_of_graph(graph, functions, node.node);
      });
  if (!is_any)
    spdlog::warn("[--costs] {}",
                 nodes.empty()
                     ? "the file has no costs of nodes"
                     : fmt::format("none of its {} is of a node of this graph",
                                   counted(nodes.size(), "cost")));
  return is_any;
}

// Fills `prepared`, except its failure, which is returned.
Failure prepare_in(const SignatureOptions& options, Purpose purpose,
                   Prepared& prepared) {
  Status names = check_fetches(options.fetches);
  for (const std::string& target : options.targets)
    if (names.ok() && target.empty())
      names = invalid_argument("[--target] the name of a node is empty");
  if (!names.ok()) return usage_error(std::move(names));
  Result<std::vector<FeedText>> texts =
      parse_feeds(options.feeds, purpose != Purpose::kLook);
  if (!texts.ok()) return usage_error(std::move(texts).status());
  if (options.batch > 0 && std::ranges::none_of(*texts, &FeedText::by_rows))
    return usage_error(invalid_argument(
        "[--batch] no feed is by rows: write --feed NAME:PORT=@FILE"));
  Failure failure = load_op_libraries(options.op_libraries);
  if (failure.exit_code != ExitCode::kOk) return failure;
  EngineOptions engine = options.engine;
  failure = connect_cluster(engine);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const auto session_options = to_session_options(engine);
  if (!session_options.ok()) return usage_error(session_options.status());

  Status allowed =
      graph::check_model_file(options.graph, session_options->policy.reads);
  if (!allowed.ok()) return file_error(std::move(allowed));
  graph::Budget budget({.timeout = session_options->timeout});
  const Result<Model> model =
      load_model(options.graph,
                 {.max_nodes = session_options->max_nodes, .budget = &budget});
  if (!model.ok()) return file_error(model.status());
  const auto of_graph = [&](Failure of) {
    of.status = name_file(std::move(of.status), options.graph);
    return of;
  };
  Status resolved = resolve(*model, options, purpose, *texts, prepared);
  if (!resolved.ok()) return run_time_error(std::move(resolved));
  if (prepared.fetches.empty() && prepared.targets.empty()) {
    return usage_error(nothing_to_run(*model));
  }
  LoadedFeeds feeds = load_feeds(model->graph, *texts, options.batch);
  if (feeds.failure.exit_code != ExitCode::kOk) return feeds.failure;
  prepared.feeds = std::move(feeds.feeds);
  prepared.by_rows = std::move(feeds.by_rows);
  prepared.queue_runners = model->queue_runners;
  prepared.state = model->state;
  Status ops = check_needed_ops(*model, prepared);
  if (!ops.ok()) return of_graph(run_time_error(std::move(ops)));

  failure = read_costs_of(options, prepared);
  if (failure.exit_code != ExitCode::kOk) return failure;
  failure = open_session(model->graph, *session_options, prepared.session);
  if (failure.exit_code != ExitCode::kOk)
    return prepared.session.is_open() ? of_graph(std::move(failure)) : failure;
  // Before any placement, since variables stay where they are placed first.
  if (!options.costs.empty()) {
    // A new file of --learn has none.
    prepared.has_costs =
        (!options.makes_costs || prepared.costs.node_costs().size() > 0) &&
        check_costs(prepared.costs, model->graph);
    Status learned = prepared.session->learn(prepared.costs);
    if (!learned.ok()) return run_time_error(std::move(learned));
  }
  if (purpose == Purpose::kLook) return {};
  return of_graph(load_state(*model, options.graph, prepared));
}

}  // namespace

void add_graph_option(CLI::App& app, std::string& path) {
  app.add_option("graph", path,
                 "a GraphDef (*.pb is binary, *.pbtxt text), a SavedModel's "
                 "folder, or a MetaGraph (*.meta); -: a GraphDef on stdin")
      ->required()
      ->type_name("GRAPH");
}

void add_name_option(CLI::App& app, std::string& name) {
  app.add_option(
         "--signature", name,
         "the signature whose input and output names --feed and --fetch "
         "accept, in addition to tensor names; default: "
         "serving_default, or the only signature")
      ->type_name("NAME");
}

void add_fetch_option(CLI::App& app, std::vector<std::string>& fetches) {
  app.add_option("--fetch", fetches,
                 "a tensor to compute, or an output of the signature; without "
                 "--fetch and --target, all outputs of the signature are "
                 "computed")
      ->type_name("NAME:PORT")
      ->expected(1)
      ->take_all();
}

void add_signature_options(CLI::App& app, SignatureOptions& options) {
  add_graph_option(app, options.graph);
  add_op_library_option(app, options.op_libraries);
  add_name_option(app, options.name);
  app.add_option(
         "--feed", options.feeds,
         "the value of a tensor, or of an input of the signature: a "
         ".npy file, a .json file, FILE.npz with an array of this name, "
         "FILE.npz:ARRAY, or a JSON literal; @FILE: one row of the "
         "file in each step")
      ->type_name("NAME:PORT=VALUE")
      ->expected(1)
      ->take_all();
  app.add_option("--batch", options.batch,
                 "take so many rows of each @FILE in a step, and begin again "
                 "at its end; default: one, without its dimension")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  add_fetch_option(app, options.fetches);
  app.add_option("--target", options.targets,
                 "a node to run without fetching its outputs")
      ->type_name("NODE")
      ->expected(1)
      ->take_all();
  add_output_option(app, "--costs", options.costs,
                    "place nodes by the measured costs in the file, which "
                    "\"tagflow place --save\" writes");
  append_to_footer(app, kValueHelp);
  add_engine_options(app, options.engine);
}

void make_values_optional(CLI::App& app) {
  app.get_option("--feed")
      ->description(
          "a tensor that is fed, or an input of the signature; its value is "
          "used only if the graph runs")
      ->type_name("NAME:PORT[=VALUE]");
}

Status check_fetches(const std::vector<std::string>& fetches) {
  for (const std::string& fetch : fetches) {
    TAGFLOW_RETURN_IF_ERROR(
        graph::parse_endpoint(fetch).status().with_prefix("[--fetch] "));
  }
  return {};
}

Prepared prepare(const SignatureOptions& options, Purpose purpose) {
  Prepared prepared;
  prepared.failure = prepare_in(options, purpose, prepared);
  return prepared;
}

Result<actors::Callable> make_callable(const Prepared& prepared,
                                       std::vector<Tensor>& values) {
  std::vector<std::string> ports;
  values.clear();
  for (const auto& [port, value] : prepared.feeds) {
    ports.push_back(port);
    values.push_back(value);
  }
  return prepared.session->make_callable(ports, prepared.fetches,
                                         prepared.targets);
}

}  // namespace tagflow::apps
