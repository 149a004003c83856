// tagflow gradients: a graph with its derivatives in it, as a file.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/common/command_line.h"
#include "apps/common/gradient_graph.h"
#include "apps/common/model.h"
#include "apps/common/summary.h"
#include "apps/common/terminal.h"
#include "apps/io/file.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/signature.h"
#include "graph/graphdef.h"
#include "graph/node_name.h"

namespace tagflow::apps {
namespace {

struct GradientsCommand {
  std::string graph;
  std::vector<std::string> checkpoints;  // LOOP=PLAN
  GradientRequest request;
  std::string out;
  bool explain = false;
  bool json = false;
};

// What was made, for people and for scripts.
struct GradientsReport {
  const GradientRequest& request;
  std::vector<NamedGradient> gradients;
  size_t nodes_before = 0;  // of the graph
  size_t nodes = 0;
  bool explain = false;
  KeptValues kept;  // of loops
};

// What is kept of each loop for its gradient, a line for each value.
std::string kept_text(const KeptValues& kept) {
  std::string text, frame;
  for (const autodiff::KeptValue& value : kept) {
    if (value.frame != frame || text.empty()) {
      frame = value.frame;
      text += fmt::format("{:<12}\"{}\"\n", "loop", frame);
    }
    text += fmt::format("  {:<12}{} {}{}, for the gradient of \"{}\"\n",
                        autodiff::kept_name(value.kept), value.tensor,
                        dtype_name(value.dtype), value.shape.to_string(),
                        value.user);
  }
  return text.empty() ? fmt::format("{:<12}nothing of loops\n", "kept") : text;
}

std::string gradients_text(const GradientsReport& report) {
  std::string text =
      fmt::format("{:<12}order {}, of {}\n", "gradients", report.request.order,
                  fmt::join(report.request.ys, ", "));
  size_t width = 0;
  for (const NamedGradient& gradient : report.gradients)
    width = std::max(width, gradient.output.name().size());
  for (size_t i = 0; i < report.gradients.size(); ++i) {
    const NamedGradient& gradient = report.gradients[i];
    const TensorNote note = note_of(gradient.output.endpoint());
    text += fmt::format(
        "  {:<{}}  {}{} by {}{}\n", note.name, width, note.dtype, note.shape,
        report.request.xs[i],
        gradient.is_connected ? "" : ": zeros, since it is not connected");
  }
  text += fmt::format("{:<12}{} nodes, {} before\n", "graph", report.nodes,
                      report.nodes_before);
  return report.explain ? text + kept_text(report.kept) : text;
}

std::string gradients_json(const GradientsReport& report) {
  nlohmann::ordered_json gradients = nlohmann::json::array();
  for (size_t i = 0; i < report.gradients.size(); ++i) {
    const NamedGradient& gradient = report.gradients[i];
    const TensorNote note = note_of(gradient.output.endpoint());
    gradients.push_back({{"name", note.name},
                         {"dtype", note.dtype},
                         {"shape", note.shape},
                         {"x", report.request.xs[i]},
                         {"connected", gradient.is_connected}});
  }
  nlohmann::ordered_json root = {{"order", report.request.order},
                                 {"ys", report.request.ys},
                                 {"gradients", std::move(gradients)},
                                 {"nodes_before", report.nodes_before},
                                 {"nodes", report.nodes}};
  if (report.explain) {
    root["kept"] = nlohmann::json::array();
    for (const autodiff::KeptValue& value : report.kept)
      root["kept"].push_back({{"loop", value.frame},
                              {"tensor", value.tensor},
                              {"dtype", dtype_name(value.dtype)},
                              {"shape", value.shape.to_string()},
                              {"how", autodiff::kept_name(value.kept)},
                              {"for", value.user}});
  }
  // A name may be anything.
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

// What is wrong with the command line before any file is opened.
Status check_request(const GradientRequest& request) {
  const auto check = [](const std::vector<std::string>& names,
                        std::string_view prefix) -> Status {
    for (const std::string& name : names)
      TAGFLOW_RETURN_IF_ERROR(
          graph::parse_endpoint(name).status().with_prefix(prefix));
    return {};
  };
  TAGFLOW_RETURN_IF_ERROR(check(request.ys, "[--y] "));
  TAGFLOW_RETURN_IF_ERROR(check(request.xs, "[--x] "));
  return graph::check_node_name(request.prefix).with_prefix("[--prefix] ");
}

// A name may have an '=', a plan has none.
Status read_checkpoints(GradientsCommand& command) {
  for (const std::string& text : command.checkpoints) {
    const size_t end = text.rfind('=');
    if (end == std::string::npos)
      return invalid_argument("[--checkpoint] \"{}\" is not LOOP=PLAN", text);
    const std::string loop = text.substr(0, end);
    if (!command.request.save.emplace(loop, text.substr(end + 1)).second)
      return invalid_argument("[--checkpoint] loop \"{}\" is named twice",
                              loop);
  }
  return {};
}

Status write_graph(const graph::Graph& graph, const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  const bool is_text =
      path.empty() || extension == ".pbtxt" || extension == ".txt";
  TAGFLOW_ASSIGN(const std::string bytes,
                 is_text ? graph::write_graphdef_text(graph)
                         : graph::write_graphdef(graph));
  if (!path.empty()) return io::write_file(path, bytes);
  print_text(bytes);
  return {};
}

Status extend_and_write(const GradientsCommand& command, graph::Graph& graph) {
  const GradientRequest& request = command.request;
  TAGFLOW_RETURN_IF_ERROR(find_outputs(graph, request.ys, "[--y] ").status());
  TAGFLOW_RETURN_IF_ERROR(find_outputs(graph, request.xs, "[--x] ").status());
  const size_t nodes_before = graph.size();
  KeptValues kept;
  TAGFLOW_ASSIGN(std::vector<NamedGradient> gradients,
                 add_gradients(graph, request, &kept));
  TAGFLOW_RETURN_IF_ERROR(write_graph(graph, command.out));
  if (command.out.empty()) return {};
  const GradientsReport report{request,         std::move(gradients),
                               nodes_before,    graph.size(),
                               command.explain, std::move(kept)};
  print_text(command.json ? gradients_json(report) : gradients_text(report));
  return {};
}

Failure write_gradients(GradientsCommand& command) {
  Status request = read_checkpoints(command);
  if (request.ok()) request = check_request(command.request);
  if (!request.ok()) return usage_error(std::move(request));
  if (!command.out.empty()) {
    Status out = io::check_writable(command.out);
    if (!out.ok())
      return run_time_error(std::move(out).with_prefix("[--out] "));
  }
  Result<Model> model = load_model(command.graph);
  if (!model.ok()) return file_error(std::move(model).status());
  Status written = extend_and_write(command, model->graph);
  return written.ok() ? Failure() : run_time_error(std::move(written));
}

}  // namespace

void add_gradients_command(CLI::App& app, ExitCode& exit_code) {
  auto command = std::make_shared<GradientsCommand>();
  CLI::App* gradients = app.add_subcommand(
      "gradients", "extend a graph with its derivatives, which a run fetches");
  add_graph_option(*gradients, command->graph);
  gradients
      ->add_option("--y", command->request.ys,
                   "tensors to differentiate: the sum of all their elements")
      ->required()
      ->type_name("NAME:PORT...");
  gradients
      ->add_option("--x", command->request.xs,
                   "tensors to differentiate by, or variables, by their "
                   "handles or references: each gets a gradient of its shape")
      ->required()
      ->type_name("NAME:PORT...");
  gradients
      ->add_option("--order", command->request.order,
                   "order K differentiates the sum of all elements of the "
                   "gradients of order K - 1 by the same tensors; default: 1")
      ->check(CLI::Range(1, kMaxGradientOrder))
      ->type_name("K");
  gradients
      ->add_option("--prefix", command->request.prefix,
                   "the gradients are called PREFIX_0, PREFIX_1, ...; default: "
                   "grad")
      ->type_name("PREFIX");
  gradients
      ->add_option("--checkpoint", command->checkpoints,
                   "the loop whose frame has this name keeps its variables of "
                   "every K-th iteration (every:K), or of some (log), and "
                   "computes the rest again; all: it keeps all")
      ->type_name("LOOP=PLAN...");
  CLI::Option* out = add_output_option(
      *gradients, "--out", command->out,
      "write the graph there, as text where the name ends in .pbtxt, and print "
      "what was added; without it, print the graph as text");
  gradients
      ->add_flag("--explain", command->explain,
                 "also print which values of loops the gradient of the last "
                 "order needs, and which of them are saved in each iteration")
      ->needs(out);
  gradients
      ->add_flag("--json", command->json,
                 "print one JSON object of what was added; errors stay text on "
                 "stderr")
      ->needs(out);
  gradients->callback(
      [command, &exit_code] { exit_code = report(write_gradients(*command)); });
}

}  // namespace tagflow::apps
