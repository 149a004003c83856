// tagflow vars: lists the variables of a model.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/checkpoint/graph_variables.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/model/model.h"
#include "apps/tagflow/model/op_libraries.h"
#include "apps/tagflow/signature.h"
#include "graph/status_text.h"

namespace tagflow::apps {
namespace {

using actors::GraphVariable;

struct VarsOptions {
  std::string graph;
  std::vector<std::string> op_libraries;
  bool json = false;
};

std::string_view kind_of(const GraphVariable& variable) {
  return variable.is_reference() ? "reference" : "resource";
}

std::string type_text(const GraphVariable& variable) {
  return std::string(dtype_name(variable.dtype)) + variable.shape.to_string();
}

// The bytes of its elements; nothing if their number is unknown, or for
// strings.
std::optional<int64_t> bytes_of(const GraphVariable& variable) {
  const std::optional<Shape> shape = variable.shape.to_shape();
  if (!shape || !is_plain(variable.dtype)) return std::nullopt;
  return checked_multiply(shape->num_elements(),
                          int64_t(dtype_size(variable.dtype)));
}

std::string vars_text(const std::vector<GraphVariable>& variables) {
  size_t name_width = 0, type_width = 0;
  for (const GraphVariable& variable : variables) {
    name_width = std::max(name_width, printable_name(variable.name).size());
    type_width = std::max(type_width, type_text(variable).size());
  }
  name_width = column_width(name_width);
  type_width = column_width(type_width);
  std::string text;
  int64_t bytes = 0;
  size_t unknown = 0;
  for (const GraphVariable& variable : variables) {
    const std::optional<int64_t> size = bytes_of(variable);
    if (!size || __builtin_add_overflow(bytes, *size, &bytes)) ++unknown;
    text += fmt::format("{:<{}}  {:<{}}  {:<9}  {:>12} bytes",
                        printable_name(variable.name), name_width,
                        type_text(variable), type_width, kind_of(variable),
                        size ? std::to_string(*size) : "?");
    if (!variable.maker.device.empty()) text += "  " + variable.maker.device;
    text += "\n";
  }
  text += fmt::format("{} variable{}, {} bytes", variables.size(),
                      variables.size() == 1 ? "" : "s", bytes);
  if (unknown > 0) text += fmt::format(", and {} of unknown size", unknown);
  return text + "\n";
}

nlohmann::ordered_json shape_json(const PartialShape& shape) {
  if (!shape.has_rank()) return nullptr;
  nlohmann::ordered_json dims = nlohmann::json::array();
  for (int i = 0; i < shape.rank(); ++i)
    if (shape.dim(i) == PartialShape::kUnknown)
      dims.push_back(nullptr);
    else
      dims.push_back(shape.dim(i));
  return dims;
}

std::string vars_json(const std::vector<GraphVariable>& variables) {
  nlohmann::ordered_json all = nlohmann::json::array();
  for (const GraphVariable& variable : variables) {
    nlohmann::ordered_json entry = {{"name", variable.name},
                                    {"dtype", dtype_name(variable.dtype)},
                                    {"shape", shape_json(variable.shape)},
                                    {"kind", kind_of(variable)},
                                    {"device", nullptr},
                                    {"bytes", nullptr}};
    if (!variable.maker.device.empty()) entry["device"] = variable.maker.device;
    if (const auto bytes = bytes_of(variable)) entry["bytes"] = *bytes;
    all.push_back(std::move(entry));
  }
  const nlohmann::ordered_json root = {{"variables", std::move(all)}};
  // A name may have any characters.
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

Failure list_variables(const VarsOptions& options) {
  Failure failure = load_op_libraries(options.op_libraries);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const Result<Model> model = load_model(options.graph);
  if (!model.ok()) return file_error(model.status());
  const auto variables = actors::find_variables(model->graph);
  if (!variables.ok())
    return run_time_error(name_file(variables.status(), options.graph));
  print_text(options.json ? vars_json(*variables) : vars_text(*variables));
  return {};
}

}  // namespace

void add_vars_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<VarsOptions>();
  CLI::App* vars = app.add_subcommand("vars", "list the variables of a model");
  add_graph_option(*vars, options->graph);
  add_op_library_option(*vars, options->op_libraries);
  vars->add_flag("--json", options->json,
                 "print one JSON object; unknown values are null");
  vars->callback(
      [options, &exit_code] { exit_code = report(list_variables(*options)); });
}

}  // namespace tagflow::apps
