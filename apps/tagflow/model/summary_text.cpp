// A summary as text and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/tagflow/model/summary.h"
#include "graph/counted.h"

namespace tagflow::apps {
namespace {

using SummaryJson = nlohmann::ordered_json;

constexpr size_t kMaxInList = 20;

// The most frequent first.
std::vector<std::pair<std::string, size_t>> by_count(
    const std::map<std::string, size_t>& counts) {
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(),
                                                     counts.end());
  std::ranges::stable_sort(
      sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

void add_counts(std::string_view label,
                const std::map<std::string, size_t>& counts,
                std::string& text) {
  if (counts.empty()) return;
  std::vector<std::string> words;
  for (const auto& [name, count] : by_count(counts)) {
    words.push_back(fmt::format("{} {}", name, count));
  }
  if (words.size() > kMaxInList) {
    const size_t left_out = words.size() - kMaxInList;
    words.resize(kMaxInList);
    words.push_back(fmt::format("and {} more", left_out));
  }
  text += fmt::format("{:<12}{}\n", label, fmt::join(words, ", "));
}

std::string describe_tensor(const TensorNote& tensor) {
  if (tensor.dtype.empty()) return tensor.name;
  return fmt::format("{} {}{}", tensor.name, tensor.dtype, tensor.shape);
}

void add_tensors(std::string_view label, const std::vector<TensorNote>& tensors,
                 std::string& text, std::string_view indent = "") {
  for (size_t i = 0; i < tensors.size() && i <= kMaxInList; ++i) {
    text += fmt::format(
        "{}{:<12}{}\n", indent, i == 0 ? label : "",
        i == kMaxInList
            ? fmt::format("and {} more", tensors.size() - kMaxInList)
            : describe_tensor(tensors[i]));
  }
}

void add_summary_frame(const FrameNote& frame, std::string& text) {
  const std::string indent(size_t(frame.depth - 1) * 2, ' ');
  text += fmt::format(
      "{}frame       \"{}\": {}, parallel_iterations {}, {}\n", indent,
      frame.name, counted(frame.nodes, "node"), frame.parallel_iterations,
      frame.condition.empty() ? "no condition" : "while " + frame.condition);
  const std::string inner = indent + "  ";
  add_tensors("variables", frame.variables, text, inner);
  add_tensors("invariants", frame.invariants, text, inner);
  add_tensors("results", frame.results, text, inner);
}

void add_calls(const std::vector<CallNote>& calls, std::string_view indent,
               std::string& text) {
  for (size_t i = 0; i < calls.size() && i < kMaxInList; ++i) {
    text += fmt::format("{}calls       {}: {} of {}\n", indent, calls[i].name,
                        calls[i].op, fmt::join(calls[i].functions, ", "));
  }
  if (calls.size() > kMaxInList) {
    text += fmt::format("{}            and {} more\n", indent,
                        calls.size() - kMaxInList);
  }
}

void add_signature(const SignatureNote& signature, std::string& text) {
  text += fmt::format("signature   \"{}\"{}\n", signature.name,
                      signature.is_chosen ? ", the one in use" : "");
  const auto add = [&](std::string_view label, const auto& tensors) {
    for (const auto& [name, tensor] : tensors) {
      text += fmt::format("  {:<12}{} = {}\n", label, name,
                          describe_tensor(tensor));
      label = "";
    }
  };
  add("inputs", signature.inputs);
  add("outputs", signature.outputs);
}

void add_function(const FunctionNote& function, std::string& text) {
  text += fmt::format("function    {}({}) -> ({}): {}{}\n", function.name,
                      fmt::join(function.inputs, ", "),
                      fmt::join(function.outputs, ", "),
                      counted(function.nodes, "node"),
                      function.is_reached ? "" : ", not called");
  add_calls(function.calls, "  ", text);
}

std::string count_calls(const GraphSummary& summary) {
  std::string text;
  if (summary.functional_loops > 0) {
    text += counted(summary.functional_loops, "functional loop") + ", ";
  }
  if (summary.functional_conditionals > 0) {
    text += counted(summary.functional_conditionals, "functional conditional") +
            ", ";
  }
  return text;
}

SummaryJson to_object(const TensorNote& tensor) {
  return {
      {"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}};
}

SummaryJson to_list(const std::vector<CallNote>& calls) {
  SummaryJson list = SummaryJson::array();
  for (const CallNote& call : calls) {
    list.push_back(
        {{"name", call.name}, {"op", call.op}, {"functions", call.functions}});
  }
  return list;
}

SummaryJson to_map(
    const std::vector<std::pair<std::string, TensorNote>>& tensors) {
  SummaryJson map = SummaryJson::object();
  for (const auto& [name, tensor] : tensors) map[name] = to_object(tensor);
  return map;
}

SummaryJson to_list(const std::vector<TensorNote>& tensors) {
  SummaryJson list = SummaryJson::array();
  for (const TensorNote& tensor : tensors) list.push_back(to_object(tensor));
  return list;
}

}  // namespace

std::string format_summary(const GraphSummary& summary) {
  std::string text = fmt::format(
      "{:<12}{}, {} data and {}, {}, {}{}\n", "graph",
      counted(summary.nodes, "node"), summary.data_edges,
      counted(summary.control_edges, "control edge"),
      counted(summary.frames.size() - 1, "loop frame"), count_calls(summary),
      counted(summary.functions.size(), "function"));
  // Users of a model need these first.
  for (const SignatureNote& signature : summary.signatures) {
    add_signature(signature, text);
  }
  add_counts("ops", summary.ops, text);
  add_counts("dtypes", summary.dtypes, text);
  add_counts("devices", summary.devices, text);
  if (summary.constants > 0) {
    text += fmt::format("{:<12}{}, {} bytes; the largest is {}\n", "constants",
                        summary.constants, summary.constant_bytes,
                        describe_tensor(summary.largest_constant));
  }
  add_tensors("feed", summary.inputs, text);
  add_tensors("unread", summary.unconsumed, text);
  if (!summary.sinks.empty()) {
    text += fmt::format("{:<12}{}\n", "targets",
                        first_of(summary.sinks, kMaxInList));
  }
  for (size_t i = 1; i < summary.frames.size(); ++i) {
    add_summary_frame(summary.frames[i], text);
  }
  add_calls(summary.calls, "", text);
  for (const FunctionNote& function : summary.functions) {
    add_function(function, text);
  }
  for (const std::string& warning : summary.warnings) {
    text += fmt::format("{:<12}{}\n", "warning", warning);
  }
  return text;
}

std::string format_summary_json(const GraphSummary& summary) {
  SummaryJson frames = SummaryJson::array(), functions = SummaryJson::array();
  SummaryJson signatures = SummaryJson::object();
  for (size_t i = 0; i < summary.frames.size(); ++i) {
    const FrameNote& frame = summary.frames[i];
    frames.push_back({{"name", frame.name},
                      {"parent", frame.parent},
                      {"nodes", frame.nodes},
                      {"parallel_iterations", frame.parallel_iterations},
                      {"condition", frame.condition},
                      {"variables", to_list(frame.variables)},
                      {"invariants", to_list(frame.invariants)},
                      {"results", to_list(frame.results)}});
  }
  for (const FunctionNote& function : summary.functions) {
    functions.push_back({{"name", function.name},
                         {"nodes", function.nodes},
                         {"called", function.is_reached},
                         {"calls", to_list(function.calls)},
                         {"inputs", function.inputs},
                         {"outputs", function.outputs}});
  }
  for (const SignatureNote& signature : summary.signatures) {
    signatures[signature.name] = {{"in_use", signature.is_chosen},
                                  {"inputs", to_map(signature.inputs)},
                                  {"outputs", to_map(signature.outputs)}};
  }
  const SummaryJson root = {
      {"nodes", summary.nodes},
      {"data_edges", summary.data_edges},
      {"control_edges", summary.control_edges},
      {"ops", summary.ops},
      {"dtypes", summary.dtypes},
      {"devices", summary.devices},
      {"constants",
       {{"count", summary.constants}, {"bytes", summary.constant_bytes}}},
      {"inputs", to_list(summary.inputs)},
      {"unread", to_list(summary.unconsumed)},
      {"targets", summary.sinks},
      {"frames", std::move(frames)},
      {"functional_loops", summary.functional_loops},
      {"functional_conditionals", summary.functional_conditionals},
      {"calls", to_list(summary.calls)},
      {"functions", std::move(functions)},
      {"signatures", std::move(signatures)},
      {"errors", summary.errors},
      {"warnings", summary.warnings}};
  return root.dump(-1, ' ', false, SummaryJson::error_handler_t::replace) +
         "\n";
}

}  // namespace tagflow::apps
