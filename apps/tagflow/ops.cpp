// tagflow ops: lists the known ops.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/shared/program/terminal.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/conform/needs.h"
#include "apps/tagflow/model/arg_text.h"
#include "apps/tagflow/model/op_libraries.h"
#include "autodiff/rule.h"
#include "devices/kernel_registry.h"
#include "graph/counted.h"
#include "graph/op_registry.h"

namespace tagflow::apps {
namespace {

struct OpsOptions {
  std::vector<std::string> op_libraries;
  std::vector<std::string> names;
  std::string filter;
  bool json = false;
};

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return part.empty() || std::search(text.begin(), text.end(), part.begin(),
                                     part.end(), same) != text.end();
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

// The types that an attribute may have, over all kernels of the device.
using TypesByAttr = std::map<std::string, std::set<DataType>>;

// The types that the kernels of an op support, by device.
std::map<std::string, TypesByAttr> types_of_kernels(const std::string& op) {
  std::map<std::string, TypesByAttr> devices;
  for (const devices::KernelDef& kernel :
       devices::KernelRegistry::global().kernels_of(op)) {
    TypesByAttr& types = devices[kernel.device_type];
    for (const auto& [attr, allowed] : kernel.types) {
      types[attr].insert(allowed.begin(), allowed.end());
    }
  }
  return devices;
}

std::vector<std::string> names_of(const std::set<DataType>& types) {
  std::vector<std::string> names;
  for (const DataType type : types) names.push_back(dtype_name(type));
  return names;
}

// Who computes the op: "engine", or the types of devices that have kernels,
// such as "CPU,GPU", or "-" if there is none.
std::string kernel_text(const graph::OpDef& op) {
  if (is_performed_by_engine(op.name)) return "engine";
  std::vector<std::string> devices;
  for (const auto& [device, types] : types_of_kernels(op.name))
    devices.push_back(device);
  return devices.empty() ? "-" : fmt::format("{}", fmt::join(devices, ","));
}

// What gradients in reverse mode do at the op.
std::string gradient_text(const graph::OpDef& op) {
  const auto* entry = autodiff::RuleTable::global().find(op.name);
  if (entry != nullptr && entry->rule != nullptr) return "yes";
  if (entry != nullptr) return "no, it is zero: " + entry->reason;
  return is_performed_by_engine(op.name)
             ? "yes, with the loop, conditional or function that it is part of"
             : "no, a graph that needs it cannot be differentiated";
}

// The same in forward mode, if there is a gradient.
std::string tangent_text(const graph::OpDef& op) {
  const auto* entry = autodiff::RuleTable::global().find(op.name);
  if (entry == nullptr || entry->rule == nullptr) return gradient_text(op);
  return entry->forward != nullptr ? "yes, by a rule of its own"
                                   : "yes, from the rule of its gradient";
}

std::string headline(const graph::OpDef& op) {
  return fmt::format("{:7} {}({}) -> ({})", kernel_text(op), op.name,
                     fmt::join(arg_texts(op.inputs), ", "),
                     fmt::join(arg_texts(op.outputs), ", "));
}

// One line in a list of many. The types are those that the kernels support.
void print_op(const graph::OpDef& op) {
  std::string text = headline(op);
  std::vector<std::string> attrs;
  for (const graph::AttrDef& attr : op.attrs) attrs.push_back(attr.name);
  if (!attrs.empty()) text += fmt::format("  [{}]", fmt::join(attrs, ", "));
  const auto devices = types_of_kernels(op.name);
  for (const auto& [device, types] : devices) {
    const bool is_named = devices.size() > 1;
    if (is_named) text += fmt::format("  {}:", device);
    for (const auto& [attr, allowed] : types) {
      text += fmt::format("{}{} {{{}}}", is_named ? " " : "  ", attr,
                          fmt::join(names_of(allowed), ", "));
    }
  }
  print_text(text + "\n");
}

// The full description of one.
void print_details(const graph::OpDef& op) {
  std::string text = headline(op) + "\n";
  const auto add = [&](std::string_view label, const std::string& what) {
    text += fmt::format("  {:<10}{}\n", label, what);
  };
  for (const std::string& arg : arg_texts(op.inputs)) add("input", arg);
  for (const std::string& arg : arg_texts(op.outputs)) add("output", arg);
  for (const std::string& attr : attr_texts(op)) add("attribute", attr);
  add("stateful", op.is_stateful ? "yes: it is never merged, folded, or left "
                                   "out of a function's body"
                                 : "no");
  if (is_performed_by_engine(op.name)) {
    add("computed", "by the engine itself, for tensors of every type");
  }
  const auto devices = types_of_kernels(op.name);
  for (const auto& [device, types] : devices) {
    if (types.empty()) add("kernels", device + ", for every type");
    for (const auto& [attr, allowed] : types) {
      add("kernels", fmt::format("{}, {} in {{{}}}", device, attr,
                                 fmt::join(names_of(allowed), ", ")));
    }
  }
  if (devices.empty() && !is_performed_by_engine(op.name)) {
    add("kernels", "none: graphs that have it load, but do not run");
  }
  add("gradient", gradient_text(op));
  add("tangent", tangent_text(op));
  print_text(text);
}

void print_op_json(const graph::OpDef& op) {
  nlohmann::json kernels = nlohmann::json::object();
  for (const auto& [device, types] : types_of_kernels(op.name)) {
    kernels[device] = nlohmann::json::object();
    for (const auto& [attr, allowed] : types) {
      kernels[device][attr] = names_of(allowed);
    }
  }
  const nlohmann::json root = {{"name", op.name},
                               {"inputs", arg_texts(op.inputs)},
                               {"outputs", arg_texts(op.outputs)},
                               {"attrs", attr_texts(op)},
                               {"stateful", op.is_stateful},
                               {"kernel", kernel_text(op)},
                               {"kernels", std::move(kernels)},
                               {"gradient", gradient_text(op)},
                               {"tangent", tangent_text(op)}};
  // Names of an op library need not be UTF-8.
  print_text(
      root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
      "\n");
}

Failure list_ops(const OpsOptions& options) {
  Failure failure = load_op_libraries(options.op_libraries);
  if (failure.exit_code != ExitCode::kOk) return failure;
  const auto& registry = graph::OpRegistry::global();
  const std::vector<std::string> names =
      options.names.empty() ? registry.names() : options.names;
  bool is_none = true;
  for (const std::string& name : names) {
    if (!contains_ignoring_case(name, options.filter)) continue;
    is_none = false;
    const Result<const graph::OpDef*> op = registry.find(name);
    if (!op.ok()) return run_time_error(op.status());
    if (options.json) {
      print_op_json(**op);
    } else if (options.names.empty()) {
      print_op(**op);
    } else {
      print_details(**op);
    }
  }
  if (!is_none) return {};
  const std::string nearest = graph::nearest_name(options.filter, names);
  return run_time_error(error(
      Code::kNotFound, "[--filter] none of the {} has \"{}\" in its name{}",
      counted(names.size(), "op"), options.filter,
      nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
}

}  // namespace

void add_ops_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* ops = app.add_subcommand(
      "ops",
      "list the ops: their kernels, inputs, outputs, attributes and types");
  ops->add_option("names", options->names,
                  "list only these ops, in full detail")
      ->type_name("OP...");
  add_op_library_option(*ops, options->op_libraries);
  ops->add_option("--filter", options->filter,
                  "list only ops with this text in their names, in any case")
      ->type_name("TEXT");
  ops->add_flag("--json", options->json, "one JSON object a line");
  ops->callback(
      [options, &exit_code] { exit_code = report(list_ops(*options)); });
}

}  // namespace tagflow::apps
