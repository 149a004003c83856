#include "apps/tagflow/gradients_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/tagflow/model/summary.h"

namespace tagflow::apps {
namespace {

// A line for each value of a loop, or of calls of a recursive function, that
// its gradient keeps.
std::string kept_text(const KeptValues& kept) {
  std::string text, where;
  for (const autodiff::KeptValue& value : kept) {
    std::string at;
    if (!value.function.empty())
      at += fmt::format("{:<12}\"{}\"\n", "function", value.function);
    if (!value.frame.empty())
      at += fmt::format("{:<12}\"{}\"\n", "loop", value.frame);
    if (at != where) text += where = at;
    text += fmt::format("  {:<12}{} {}{}, for the gradient of \"{}\"\n",
                        autodiff::kept_name(value.kept), value.tensor,
                        dtype_name(value.dtype), value.shape.to_string(),
                        value.user);
  }
  return text.empty()
             ? fmt::format("{:<12}nothing of loops or recursions\n", "kept")
             : text;
}

size_t name_width(const std::vector<NamedGradient>& made) {
  size_t width = 0;
  for (const NamedGradient& each : made)
    width = std::max(width, each.output.name().size());
  return width;
}

nlohmann::ordered_json tensor_json(const graph::Output& output) {
  const TensorNote note = note_of(output.endpoint());
  return {{"name", note.name}, {"dtype", note.dtype}, {"shape", note.shape}};
}

// A name may have any characters.
std::string line_of(const nlohmann::ordered_json& root) {
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace

std::string gradients_text(const GradientsReport& report) {
  std::string text =
      fmt::format("{:<12}order {}, of {}\n", "gradients", report.request.order,
                  fmt::join(report.request.ys, ", "));
  const size_t width = name_width(report.gradients);
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
    nlohmann::ordered_json entry = tensor_json(gradient.output);
    entry["x"] = report.request.xs[i];
    entry["connected"] = gradient.is_connected;
    gradients.push_back(std::move(entry));
  }
  nlohmann::ordered_json root = {{"order", report.request.order},
                                 {"ys", report.request.ys},
                                 {"gradients", std::move(gradients)},
                                 {"nodes_before", report.nodes_before},
                                 {"nodes", report.nodes}};
  if (report.explain) {
    root["kept"] = nlohmann::json::array();
    for (const autodiff::KeptValue& value : report.kept)
      root["kept"].push_back({{"function", value.function},
                              {"loop", value.frame},
                              {"tensor", value.tensor},
                              {"dtype", dtype_name(value.dtype)},
                              {"shape", value.shape.to_string()},
                              {"how", autodiff::kept_name(value.kept)},
                              {"for", value.user}});
  }
  return line_of(root);
}

std::string tangents_text(const TangentsReport& report) {
  std::string text =
      fmt::format("{:<12}order {}, by {}\n", "tangents", report.request.order,
                  fmt::join(report.request.xs, ", "));
  const std::vector<NamedGradient>& of_ys = report.tangents.of_ys;
  size_t width = name_width(of_ys);
  for (const graph::Output& along : report.tangents.of_xs)
    width = std::max(width, along.name().size());
  for (size_t i = 0; i < of_ys.size(); ++i) {
    const TensorNote note = note_of(of_ys[i].output.endpoint());
    text += fmt::format(
        "  {:<{}}  {}{} of {}{}\n", note.name, width, note.dtype, note.shape,
        report.request.ys[i],
        of_ys[i].is_connected ? "" : ": zeros, since it is not connected");
  }
  for (size_t i = 0; i < report.tangents.of_xs.size(); ++i) {
    const TensorNote note = note_of(report.tangents.of_xs[i].endpoint());
    text +=
        fmt::format("  {:<{}}  {}{} of {}: {}\n", note.name, width, note.dtype,
                    note.shape, report.request.xs[i],
                    report.request.tangents.empty() ? "to be fed" : "given");
  }
  return text + fmt::format("{:<12}{} nodes, {} before\n", "graph",
                            report.nodes, report.nodes_before);
}

std::string tangents_json(const TangentsReport& report) {
  nlohmann::ordered_json of_ys = nlohmann::json::array();
  for (size_t i = 0; i < report.tangents.of_ys.size(); ++i) {
    const NamedGradient& tangent = report.tangents.of_ys[i];
    nlohmann::ordered_json entry = tensor_json(tangent.output);
    entry["y"] = report.request.ys[i];
    entry["connected"] = tangent.is_connected;
    of_ys.push_back(std::move(entry));
  }
  nlohmann::ordered_json of_xs = nlohmann::json::array();
  for (size_t i = 0; i < report.tangents.of_xs.size(); ++i) {
    nlohmann::ordered_json entry = tensor_json(report.tangents.of_xs[i]);
    entry["x"] = report.request.xs[i];
    of_xs.push_back(std::move(entry));
  }
  return line_of({{"order", report.request.order},
                  {"xs", report.request.xs},
                  {"tangents", std::move(of_ys)},
                  {"of_xs", std::move(of_xs)},
                  {"nodes_before", report.nodes_before},
                  {"nodes", report.nodes}});
}

}  // namespace tagflow::apps
