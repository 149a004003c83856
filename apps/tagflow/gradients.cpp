// tagflow gradients: writes a graph extended with its derivatives.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/shared/io/file.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/engine_options.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/gradients_report.h"
#include "apps/tagflow/model/model.h"
#include "apps/tagflow/model/op_libraries.h"
#include "apps/tagflow/signature.h"
#include "graph/budget.h"
#include "graph/file/graphdef.h"
#include "graph/node_name.h"
#include "graph/op_registry.h"
#include "graph/status_text.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

struct GradientsCommand {
  std::string graph;
  std::vector<std::string> op_libraries;
  std::string signature;  // whose names --y and --x may be; or empty
  std::vector<std::string> checkpoints;  // LOOP=PLAN
  GradientRequest request;
  bool forward = false;
  std::vector<std::string> tangents;  // of the xs
  std::string out;
  double timeout = 0;  // seconds; 0: none
  bool explain = false;
  bool json = false;
};

// The request in forward mode, which has other names.
TangentRequest tangent_request(const GradientsCommand& command) {
  TangentRequest request{.ys = command.request.ys,
                         .xs = command.request.xs,
                         .tangents = command.tangents,
                         .order = command.request.order};
  if (command.request.prefix != kGradientPrefix)
    request.prefix = command.request.prefix;
  return request;
}

// Checks the command line before any file is opened.
Status check_request(const GradientsCommand& command) {
  const GradientRequest& request = command.request;
  const auto check = [](const std::vector<std::string>& names,
                        std::string_view prefix) -> Status {
    for (const std::string& name : names)
      TAGFLOW_RETURN_IF_ERROR(
          graph::parse_endpoint(name).status().with_prefix(prefix));
    return {};
  };
  TAGFLOW_RETURN_IF_ERROR(check(request.ys, "[--y] "));
  TAGFLOW_RETURN_IF_ERROR(check(request.xs, "[--x] "));
  TAGFLOW_RETURN_IF_ERROR(check(command.tangents, "[--tangent] "));
  const fs::path out = command.out;
  if (out.extension() == ".meta" || out.filename() == "saved_model.pb" ||
      out.filename() == "saved_model.pbtxt")
    return invalid_argument(
        "[--out] a GraphDef is written, which such a file cannot have: \"{}\" "
        "should end in .pb or .pbtxt",
        command.out);
  // Another extension is that of no format, and its file is binary.
  const std::string nearest =
      graph::nearest_name(out.extension().string(), {".pb", ".pbtxt", ".txt"});
  if (!nearest.empty() && out.extension() != nearest)
    return invalid_argument("[--out] did you mean \"{}\" in place of \"{}\"?",
                            fs::path(out).replace_extension(nearest).string(),
                            command.out);
  if (!command.tangents.empty() && command.tangents.size() != request.xs.size())
    return invalid_argument("[--tangent] {} tangents are given for {} --x",
                            command.tangents.size(), request.xs.size());
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

bool is_text(const fs::path& path) {
  return path.extension() == ".pbtxt" || path.extension() == ".txt";
}

// Whether the result is a SavedModel, like the graph. A name with the extension
// of a graph file means a GraphDef.
bool writes_model(const GradientsCommand& command) {
  const fs::path out = command.out;
  std::error_code unknown;
  return !out.empty() && fs::is_directory(command.graph, unknown) &&
         out.extension() != ".pb" && !is_text(out);
}

// Names of the signature become those of tensors; other names stay.
Status find_names(const Model& model, GradientsCommand& command) {
  TAGFLOW_ASSIGN(const NamedSignature* signature,
                 choose_signature(model, command.signature));
  if (signature == nullptr) return {};
  const auto find = [](const std::map<std::string, std::string>& known,
                       std::vector<std::string>& names) {
    for (std::string& name : names)
      if (const auto it = known.find(name); it != known.end())
        name = it->second;
  };
  find(signature->second.outputs, command.request.ys);
  find(signature->second.inputs, command.request.xs);
  return {};
}

Status write_graph(const GradientsCommand& command, const graph::Graph& graph) {
  const std::string& path = command.out;
  if (writes_model(command))
    return graph::save_model(graph, command.graph, path);
  TAGFLOW_ASSIGN(const std::string bytes,
                 path.empty() || is_text(path)
                     ? graph::write_graphdef_text(graph)
                     : graph::write_graphdef(graph));
  if (!path.empty()) return io::write_file(path, bytes);
  print_text(bytes);
  return {};
}

Status write_and_print(const GradientsCommand& command,
                       const graph::Graph& graph, const std::string& text,
                       const std::string& json) {
  TAGFLOW_RETURN_IF_ERROR(write_graph(command, graph));
  if (!command.out.empty()) print_text(command.json ? json : text);
  return {};
}

Status extend_forward(const GradientsCommand& command, graph::Graph& graph,
                      const graph::Limits& limits) {
  TAGFLOW_RETURN_IF_ERROR(
      find_outputs(graph, command.tangents, "[--tangent] ").status());
  const TangentRequest request = tangent_request(command);
  const size_t nodes_before = graph.size();
  auto tangents = add_tangents(graph, request, limits);
  if (!tangents.ok()) return name_file(tangents.status(), command.graph);
  const TangentsReport report{request, *std::move(tangents), nodes_before,
                              graph.size()};
  return write_and_print(command, graph, tangents_text(report),
                         tangents_json(report));
}

Status extend_and_write(const GradientsCommand& command, graph::Graph& graph,
                        const graph::Limits& limits) {
  const GradientRequest& request = command.request;
  TAGFLOW_RETURN_IF_ERROR(find_outputs(graph, request.ys, "[--y] ").status());
  TAGFLOW_RETURN_IF_ERROR(find_outputs(graph, request.xs, "[--x] ").status());
  if (command.forward) return extend_forward(command, graph, limits);
  const size_t nodes_before = graph.size();
  KeptValues kept;
  auto gradients = add_gradients(graph, request, &kept, limits);
  if (!gradients.ok()) return name_file(gradients.status(), command.graph);
  const GradientsReport report{request,         *std::move(gradients),
                               nodes_before,    graph.size(),
                               command.explain, std::move(kept)};
  return write_and_print(command, graph, gradients_text(report),
                         gradients_json(report));
}

Failure write_gradients(GradientsCommand& command) {
  Status request = read_checkpoints(command);
  if (request.ok()) request = check_request(command);
  const auto timeout = to_timeout(command.timeout);
  if (request.ok()) request = timeout.status();
  if (!request.ok()) return usage_error(std::move(request));
  if (!command.out.empty() && !writes_model(command)) {
    Status out = io::check_writable(command.out);
    if (!out.ok())
      return run_time_error(std::move(out).with_prefix("[--out] "));
  }
  Failure failure = load_op_libraries(command.op_libraries);
  if (failure.exit_code != ExitCode::kOk) return failure;
  graph::Budget budget({.timeout = *timeout});
  const graph::Limits limits{.budget = &budget};
  Result<Model> model = load_model(command.graph, limits);
  if (!model.ok()) return file_error(std::move(model).status());
  Status names = find_names(*model, command);
  if (!names.ok()) return run_time_error(std::move(names));
  budget.begin("the graph was differentiated");
  Status written = extend_and_write(command, model->graph, limits);
  return written.ok() ? Failure() : run_time_error(std::move(written));
}

}  // namespace

void add_gradients_command(CLI::App& app, ExitCode& exit_code) {
  auto command = std::make_shared<GradientsCommand>();
  CLI::App* gradients = app.add_subcommand(
      "gradients", "extend a graph with its derivatives, which a run fetches");
  add_graph_option(*gradients, command->graph);
  add_op_library_option(*gradients, command->op_libraries);
  gradients
      ->add_option("--signature", command->signature,
                   "the signature whose outputs --y, and whose inputs --x can "
                   "name, in addition to tensor names; default: "
                   "serving_default, or the only signature")
      ->type_name("NAME");
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
                   "grad, with --forward jvp")
      ->type_name("PREFIX");
  CLI::Option* forward = gradients->add_flag(
      "--forward", command->forward,
      "add tangents in place of gradients: for each --y what it changes by "
      "if each --x changes by its tangent, without saving anything of "
      "loops");
  gradients
      ->add_option("--tangent", command->tangents,
                   "the tangents of the tensors to differentiate by, one for "
                   "each; left out, they are fed as PREFIX_x_0, ...")
      ->needs(forward)
      ->type_name("NAME:PORT...");
  gradients
      ->add_option(
          "--checkpoint", command->checkpoints,
          "the loop whose frame, or While op, has this name keeps its "
          "variables of every K-th iteration (every:K), or of some (log), and "
          "computes the rest again; all: it keeps all")
      ->type_name("LOOP=PLAN...")
      ->excludes(forward);
  CLI::Option* out = add_output_option(
      *gradients, "--out", command->out,
      "write the graph there, as text if the name ends in .pbtxt, and print "
      "what was added; of a SavedModel, another name than *.pb is a new "
      "folder, for a SavedModel with the same variables, signatures and "
      "assets; without it, print the graph as text");
  add_timeout_option(*gradients, command->timeout,
                     "seconds after which reading the graph and making the "
                     "derivatives end; 0: none");
  gradients
      ->add_flag("--explain", command->explain,
                 "also print which values of loops the gradient of the last "
                 "order needs, and which of them are saved in each iteration")
      ->needs(out)
      ->excludes(forward);
  gradients
      ->add_flag("--json", command->json,
                 "print one JSON object of what was added; errors stay text on "
                 "stderr")
      ->needs(out);
  gradients->callback(
      [command, &exit_code] { exit_code = report(write_gradients(*command)); });
}

}  // namespace tagflow::apps
