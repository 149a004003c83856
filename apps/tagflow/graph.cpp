// tagflow graph: what a file holds, whether that is right, how it looks.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/summary.h"
#include "apps/common/terminal.h"
#include "apps/draw/svg.h"
#include "apps/io/file.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/signature.h"
#include "graph/graphdef.h"
#include "graph/prune.h"
#include "graph/validate.h"

namespace tagflow::apps {
namespace {

struct GraphOptions {
  std::string graph;
  std::vector<std::string> fetches;
  std::string dot;
  std::string svg;
  bool json = false;
};

// All nodes, or what the fetches need, in order.
Result<std::vector<graph::Node*>> chosen_nodes(
    const graph::Graph& graph, const std::vector<std::string>& fetches) {
  std::vector<graph::Endpoint> endpoints;
  for (const std::string& fetch : fetches) {
    Result<graph::Endpoint> endpoint = graph.endpoint(fetch);
    if (!endpoint.ok()) {
      return std::move(endpoint).status().with_prefix("[--fetch] ");
    }
    endpoints.push_back(*endpoint);
  }
  const graph::NodeSet needed = graph::prune(graph, endpoints, {}, {});
  std::vector<graph::Node*> nodes;
  for (graph::Node* node : graph.nodes()) {
    if (fetches.empty() || needed.contains(*node)) nodes.push_back(node);
  }
  return nodes;
}

Status draw_files(const GraphOptions& options, const draw::Drawing& drawing) {
  if (!options.dot.empty()) {
    TAGFLOW_RETURN_IF_ERROR(io::write_file(options.dot, draw::to_dot(drawing)));
  }
  if (options.svg.empty()) return {};
  TAGFLOW_ASSIGN(const draw::Layout layout, draw::lay_out(drawing));
  return io::write_file(options.svg, draw::to_svg(drawing, layout));
}

// From the graph to its summary; draws it on the way.
Result<GraphSummary> examine(const GraphOptions& options,
                             const graph::Graph& graph) {
  TAGFLOW_RETURN_IF_ERROR(graph::validate(graph));
  TAGFLOW_ASSIGN(const graph::FrameMap frames, graph::FrameMap::build(graph));
  TAGFLOW_ASSIGN(const std::vector<graph::Node*> nodes,
                 chosen_nodes(graph, options.fetches));
  TAGFLOW_RETURN_IF_ERROR(
      draw_files(options, draw::make_drawing(nodes, frames)));
  return summarise(graph, nodes, frames);
}

Failure show_graph(const GraphOptions& options) {
  Status fetches = check_fetches(options.fetches);
  if (!fetches.ok()) return usage_error(std::move(fetches));
  const Result<graph::Graph> graph = graph::load_graph(options.graph);
  if (!graph.ok()) return file_error(graph.status());
  const Result<GraphSummary> summary = examine(options, *graph);
  if (!summary.ok()) return run_time_error(summary.status());
  const std::string text =
      options.json ? format_summary_json(*summary) : format_summary(*summary);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace

void add_graph_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<GraphOptions>();
  CLI::App* command = app.add_subcommand(
      "graph", "check a graph, say what it is made of, draw it");
  add_graph_option(*command, options->graph);
  add_fetch_option(*command, options->fetches);
  command->add_option("--dot", options->dot, "write it in Graphviz's language")
      ->type_name("FILE");
  command->add_option("--svg", options->svg, "draw it; needs Graphviz")
      ->type_name("FILE");
  command->add_flag("--json", options->json,
                    "print one JSON object; errors stay text on stderr");
  command->callback(
      [options, &exit_code] { exit_code = report(show_graph(*options)); });
}

}  // namespace tagflow::apps
