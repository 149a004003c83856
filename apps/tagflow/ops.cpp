// tagflow ops: the ops that there are.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/terminal.h"
#include "apps/conform/needs.h"
#include "apps/tagflow/commands.h"
#include "graph/op_registry.h"

namespace tagflow::apps {
namespace {

struct OpsOptions {
  std::vector<std::string> names;
  std::string filter;
  bool json = false;
};

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     same) != text.end();
}

std::string type_text(const graph::ArgDef& arg) {
  std::string type = !arg.type_attr.empty()        ? arg.type_attr
                     : !arg.type_list_attr.empty() ? arg.type_list_attr
                                                   : dtype_name(arg.dtype);
  if (arg.is_ref) type = "Ref(" + type + ")";
  return arg.number_attr.empty() ? type : arg.number_attr + " * " + type;
}

std::vector<std::string> arg_texts(const std::vector<graph::ArgDef>& args) {
  std::vector<std::string> texts;
  for (const graph::ArgDef& arg : args) {
    texts.push_back(arg.name + ": " + type_text(arg));
  }
  return texts;
}

std::vector<std::string> attr_texts(const graph::OpDef& op) {
  std::vector<std::string> texts;
  for (const graph::AttrDef& attr : op.attrs) {
    std::string text = attr.name + ": " + attr.type;
    if (attr.minimum) text += fmt::format(" >= {}", *attr.minimum);
    if (!attr.allowed_types.empty()) {
      std::vector<std::string> types;
      for (DataType type : attr.allowed_types) {
        types.push_back(dtype_name(type));
      }
      text += fmt::format(" in {{{}}}", fmt::join(types, ", "));
    }
    if (!attr.allowed_strings.empty()) {
      text += fmt::format(" in {{{}}}", fmt::join(attr.allowed_strings, ", "));
    }
    if (attr.default_value) text += " = " + attr.default_value->to_string();
    texts.push_back(std::move(text));
  }
  return texts;
}

// Who computes the op: "CPU", "engine", or "-" where nobody does yet.
std::string kernel_text(const graph::OpDef& op) {
  if (is_performed_by_engine(op.name)) return "engine";
  return has_cpu_kernel(op.name) ? "CPU" : "-";
}

void print_op(const graph::OpDef& op) {
  fmt::print("{:6} {}({}) -> ({})", kernel_text(op), op.name,
             fmt::join(arg_texts(op.inputs), ", "),
             fmt::join(arg_texts(op.outputs), ", "));
  if (!op.attrs.empty()) {
    fmt::print("  [{}]", fmt::join(attr_texts(op), "; "));
  }
  fmt::print("\n");
}

void print_op_json(const graph::OpDef& op) {
  const nlohmann::json root = {{"name", op.name},
                               {"inputs", arg_texts(op.inputs)},
                               {"outputs", arg_texts(op.outputs)},
                               {"attrs", attr_texts(op)},
                               {"stateful", op.is_stateful},
                               {"kernel", kernel_text(op)}};
  fmt::print("{}\n", root.dump());
}

Failure list_ops(const OpsOptions& options) {
  const auto& registry = graph::OpRegistry::global();
  const std::vector<std::string> names =
      options.names.empty() ? registry.names() : options.names;
  for (const std::string& name : names) {
    if (!contains_ignoring_case(name, options.filter)) continue;
    const Result<const graph::OpDef*> op = registry.find(name);
    if (!op.ok()) return run_time_error(op.status());
    options.json ? print_op_json(**op) : print_op(**op);
  }
  return {};
}

}  // namespace

void add_ops_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* ops = app.add_subcommand(
      "ops", "list the ops: who computes it, inputs, outputs, attributes");
  ops->add_option("names", options->names, "only these")->type_name("OP...");
  ops->add_option("--filter", options->filter,
                  "only those with this in their names, in any case")
      ->type_name("TEXT");
  ops->add_flag("--json", options->json, "one JSON object a line");
  ops->callback(
      [options, &exit_code] { exit_code = report(list_ops(*options)); });
}

}  // namespace tagflow::apps
