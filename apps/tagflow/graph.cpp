// tagflow graph: summarises, checks and draws a graph.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "apps/shared/draw/svg.h"
#include "apps/shared/io/file.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/model/model_check.h"
#include "apps/tagflow/model/op_libraries.h"
#include "apps/tagflow/signature.h"
#include "graph/analysis/extract.h"
#include "graph/analysis/validate.h"
#include "graph/functions/lower.h"
#include "graph/status_text.h"

namespace tagflow::apps {
namespace {

struct GraphOptions {
  std::string graph;
  std::vector<std::string> op_libraries;
  std::string signature;
  std::vector<std::string> fetches;
  std::string dot;
  std::string svg;
  bool inlined = false;
  bool json = false;
};

// The summarised nodes: those that --fetch or --signature needs, else all.
Result<Nodes> chosen_nodes(const Model& model, const GraphOptions& options,
                           const NamedSignature* signature) {
  if (options.fetches.empty() && options.signature.empty()) {
    return Nodes(model.graph.nodes().begin(), model.graph.nodes().end());
  }
  std::vector<graph::Endpoint> endpoints;
  const auto add = [&](const std::string& text) -> Status {
    TAGFLOW_ASSIGN(
        const TensorName found,
        find_tensor(model, signature, &graph::Signature::outputs, text));
    TAGFLOW_ASSIGN(const graph::Endpoint endpoint,
                   model.graph.endpoint(found.tensor));
    endpoints.push_back(endpoint);
    return {};
  };
  for (const std::string& fetch : options.fetches) {
    TAGFLOW_RETURN_IF_ERROR(add(fetch).with_prefix("[--fetch] "));
  }
  if (options.fetches.empty()) {
    for (const auto& [name, tensor] : signature->second.outputs) {
      TAGFLOW_RETURN_IF_ERROR(add(name).with_prefix("[--signature] "));
    }
  }
  return needed_by(model.graph, endpoints);
}

Status draw_files(const GraphOptions& options, const draw::Drawing& drawing) {
  if (!options.dot.empty()) {
    TAGFLOW_RETURN_IF_ERROR(io::write_file(options.dot, draw::to_dot(drawing)));
  }
  if (options.svg.empty()) return {};
  TAGFLOW_ASSIGN(const draw::Layout layout, draw::lay_out(drawing));
  return io::write_file(options.svg, draw::to_svg(drawing, layout));
}

// The nodes, which must be the graph's, as a run has them: instead of each call
// of a function there is its body, and instead of functional control flow its
// primitives. A function that calls itself stays a node `_Call`.
Result<graph::Program> inline_functions(const Model& model, const Nodes& nodes,
                                        const graph::FrameMap& frames) {
  Nodes targets;
  std::ranges::copy_if(
      nodes, std::back_inserter(targets), [&](const graph::Node* node) {
        return frames.output_of(*node) == graph::FrameId::kRoot;
      });
  TAGFLOW_ASSIGN(graph::Program program,
                 graph::extract(model.graph, {}, {}, targets));
  TAGFLOW_RETURN_IF_ERROR(graph::lower_functions(program));
  program.graph.library() = graph::FunctionLibrary();
  return program;
}

// Draws the nodes and summarises them.
Result<GraphSummary> show_nodes(const GraphOptions& options,
                                const graph::Graph& graph, const Nodes& nodes,
                                const graph::FrameMap& frames) {
  TAGFLOW_RETURN_IF_ERROR(
      draw_files(options, draw::make_drawing(nodes, frames)));
  return summarise(graph, nodes, frames);
}

Result<GraphSummary> show_inlined(const GraphOptions& options,
                                  const Model& model, const Nodes& nodes,
                                  const graph::FrameMap& frames) {
  TAGFLOW_ASSIGN(const graph::Program program,
                 inline_functions(model, nodes, frames));
  TAGFLOW_ASSIGN(const graph::FrameMap inlined_frames,
                 graph::validated_frames(program.graph));
  const Nodes inlined(program.graph.nodes().begin(),
                      program.graph.nodes().end());
  return show_nodes(options, program.graph, inlined, inlined_frames);
}

// From the graph to its summary; draws it on the way.
Result<GraphSummary> examine(const GraphOptions& options, const Model& model) {
  Result<graph::FrameMap> valid = graph::validated_frames(model.graph);
  if (!valid.ok()) return name_file(std::move(valid).status(), options.graph);
  const graph::FrameMap frames = *std::move(valid);
  TAGFLOW_ASSIGN(const NamedSignature* signature,
                 choose_signature(model, options.signature));
  TAGFLOW_ASSIGN(const Nodes nodes, chosen_nodes(model, options, signature));
  TAGFLOW_ASSIGN(GraphSummary summary,
                 options.inlined
                     ? show_inlined(options, model, nodes, frames)
                     : show_nodes(options, model.graph, nodes, frames));
  add_signatures(model, signature, summary);
  if (options.inlined) return summary;  // all functions it calls are checked
  const bool is_whole = options.fetches.empty() && options.signature.empty();
  check_functions(model, nodes, is_whole, summary);
  return summary;
}

Failure show_graph(const GraphOptions& options) {
  Status fetches = check_fetches(options.fetches);
  if (!fetches.ok()) return usage_error(std::move(fetches));
  for (const std::string& path : {options.dot, options.svg}) {
    Status status = path.empty() ? Status() : io::check_writable(path);
    if (!status.ok()) return run_time_error(std::move(status));
  }
  Failure failure = load_op_libraries(options.op_libraries);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const Result<Model> model = load_model(options.graph);
  if (!model.ok()) return file_error(model.status());
  const Result<GraphSummary> summary = examine(options, *model);
  if (!summary.ok()) return run_time_error(summary.status());
  const std::string text =
      options.json ? format_summary_json(*summary) : format_summary(*summary);
  print_text(text);
  // Flushes stdout before logging, if both go to the same place.
  (void)flush_stdout();
  for (const std::string& error : summary->errors)
    spdlog::error("{}: {}", options.graph, error);
  return {summary->errors.empty() ? ExitCode::kOk : ExitCode::kRunTimeError,
          {}};
}

}  // namespace

void add_graph_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<GraphOptions>();
  CLI::App* command = app.add_subcommand(
      "graph", "check a graph, describe its contents, and draw it");
  add_graph_option(*command, options->graph);
  add_op_library_option(*command, options->op_libraries);
  add_name_option(*command, options->signature);
  add_fetch_option(*command, options->fetches);
  add_output_option(*command, "--dot", options->dot,
                    "write the graph in Graphviz's language");
  add_output_option(*command, "--svg", options->svg, "draw it; needs Graphviz");
  command->add_flag("--inline", options->inlined,
                    "describe and draw what a run has: bodies instead of calls "
                    "of functions, and primitives instead of functional "
                    "control flow");
  command->add_flag("--json", options->json,
                    "print one JSON object; errors stay text on stderr");
  command->callback([options, &exit_code] {
    const Failure failure = show_graph(*options);
    exit_code = failure.status.ok() ? failure.exit_code : report(failure);
  });
}

}  // namespace tagflow::apps
