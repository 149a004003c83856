// The recording as JSON, and the page around it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/shared/draw/svg.h"
#include "apps/tagflow/stepper/page_parts.h"
#include "apps/tagflow/stepper/text.h"

namespace tagflow::apps::stepper {
namespace {

using Json = nlohmann::ordered_json;

std::string_view word_for(StepKind kind) {
  switch (kind) {
    case StepKind::kArrive:
      return "arrive";
    case StepKind::kFire:
      return "fire";
    case StepKind::kSkip:
      return "skip";
    case StepKind::kAnswer:
      return "answer";
    case StepKind::kEnd:
      return "end";
  }
  return "";
}

Json to_object(const Scope& scope, const std::string& name) {
  return {{"name", name},
          {"instance", scope.instance},
          {"iteration", scope.iteration}};
}

Json to_object(const Step& step) {
  Json object = {{"kind", word_for(step.kind)}, {"scope", step.scope}};
  if (step.node >= 0) object["node"] = step.node;
  if (step.starts) object["starts"] = true;
  if (step.starts_frame) object["starts_frame"] = true;
  if (step.ends_frame) object["ends_frame"] = true;
  if (step.running > 0) object["running"] = step.running;
  if (step.children > 0) object["children"] = step.children;
  if (step.kept > 0) object["kept"] = step.kept;
  if (step.dropped > 0) object["dropped"] = step.dropped;
  if (!step.dead_exits.empty()) object["dead_exits"] = step.dead_exits;
  if (!step.outputs.empty()) object["outputs"] = step.outputs;
  Json arrivals = Json::array(), tokens = Json::array(),
       pending = Json::array();
  for (const Arrival& arrival : step.arrivals) {
    arrivals.push_back(Json::array({arrival.node, arrival.value}));
  }
  for (const TokenChange& change : step.tokens) {
    tokens.push_back(Json::array({change.place, change.scope, change.value}));
  }
  for (const PendingChange& change : step.pending) {
    pending.push_back(Json::array({change.node, change.count}));
  }
  if (!arrivals.empty()) object["arrivals"] = std::move(arrivals);
  if (!tokens.empty()) object["tokens"] = std::move(tokens);
  if (!pending.empty()) object["pending"] = std::move(pending);
  if (!step.ready.empty()) object["ready"] = step.ready;
  if (step.more_ready > 0) object["more_ready"] = step.more_ready;
  return object;
}

Json to_object(const draw::DrawnNode& node, const NodeNote& note) {
  return {{"name", node.name},
          {"op", node.op},
          {"frame", node.frame},
          {"attrs", note.attrs},
          {"outputs", note.outputs}};
}

Json to_object(const std::vector<ListedEdge>& edges) {
  Json objects = Json::array();
  for (const ListedEdge& edge : edges)
    objects.push_back({{"port", edge.port},
                       {"kind", edge.kind},
                       {"to", edge.to},
                       {"index", edge.index}});
  return objects;
}

Json to_object(const ListedNode& node) {
  Json constants = Json::array();
  for (const auto& [input, constant] : node.constants)
    constants.push_back(Json::array({input, constant}));
  return {{"name", node.name},
          {"op", node.op},
          {"kind", node.kind},
          {"waits",
           {{"first", node.waits.first},
            {"later", node.waits.later},
            {"steady_first", node.waits.steady_first},
            {"steady_later", node.waits.steady_later}}},
          {"constants", std::move(constants)},
          {"edges", to_object(node.edges)}};
}

Json to_object(const ListedFrame& frame) {
  Json arrivals = Json::array(), nodes = Json::array();
  for (const ListedArrival& arrival : frame.arrivals)
    arrivals.push_back({{"name", arrival.name},
                        {"is_constant", arrival.is_constant},
                        {"edges", to_object(arrival.edges)}});
  for (const ListedNode& node : frame.nodes) nodes.push_back(to_object(node));
  return {{"name", frame.name},
          {"parent", frame.parent},
          {"is_body", frame.is_body},
          {"parallel_iterations", frame.parallel_iterations},
          {"enters", frame.num_enters},
          {"arrivals", std::move(arrivals)},
          {"nodes", std::move(nodes)}};
}

Json to_object(const PlanListing& plans) {
  Json objects = Json::array();
  for (const ListedPlan& plan : plans) {
    Json frames = Json::array();
    for (const ListedFrame& frame : plan.frames)
      frames.push_back(to_object(frame));
    objects.push_back({{"device", plan.device}, {"frames", std::move(frames)}});
  }
  return objects;
}

Json to_object(const Recording& recording, const Frontispiece& front) {
  Json nodes = Json::array(), edges = Json::array(), frames = Json::array(),
       instances = Json::array(), scopes = Json::array(),
       values = Json::array(), steps = Json::array();
  for (size_t i = 0; i < recording.drawing.nodes.size(); ++i) {
    nodes.push_back(to_object(recording.drawing.nodes[i], recording.notes[i]));
  }
  for (const draw::DrawnEdge& edge : recording.drawing.edges) {
    edges.push_back(Json::array({edge.from, edge.port, edge.to, edge.slot}));
  }
  for (const draw::DrawnFrame& frame : recording.drawing.frames) {
    frames.push_back({{"name", frame.name}, {"parent", frame.parent}});
  }
  for (const Instance& instance : recording.instances) {
    instances.push_back({{"frame", instance.drawn},
                         {"number", instance.number},
                         {"caller", instance.caller}});
  }
  const std::vector<std::string> names = scope_names(recording);
  for (size_t i = 0; i < recording.scopes.size(); ++i) {
    scopes.push_back(to_object(recording.scopes[i], names[i]));
  }
  for (const Value& value : recording.values) {
    values.push_back(Json::array({value.brief, value.text}));
  }
  for (const Step& step : recording.steps) steps.push_back(to_object(step));
  Json object = {
      {"title", front.title},        {"notes", front.notes},
      {"result", front.result},      {"error", front.error},
      {"nodes", std::move(nodes)},   {"edges", std::move(edges)},
      {"frames", std::move(frames)}, {"instances", std::move(instances)},
      {"scopes", std::move(scopes)}, {"values", std::move(values)},
      {"steps", std::move(steps)}};
  if (!front.plans.empty()) object["plans"] = to_object(front.plans);
  return object;
}

// JSON inside <script>: escapes text that looks like the element's end or the
// start of a comment.
std::string escape_script(std::string_view json) {
  std::string escaped;
  for (const char c : json) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string to_json(const Recording& recording, const Frontispiece& front) {
  return to_object(recording, front)
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::string to_page(const Recording& recording, const Frontispiece& front,
                    const draw::Layout& layout) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n";
  page += "<meta charset=\"utf-8\">\n<title>" +
          draw::escape_markup(front.title) + " - tagflow step</title>\n";
  page += fmt::format("<style>{}\n{}</style>\n</head>\n", draw::svg_style(),
                      kPageStyle);
  page += kPageBody;
  page += draw::to_svg(recording.drawing, layout, false);
  page += "</main>\n<script type=\"application/json\" id=\"recording\">\n";
  page += escape_script(to_json(recording, front));
  page += fmt::format(
      "</script>\n<script>\n{}\n{}\n{}</script>\n</body>\n</html>\n",
      kPageState, kPageFrames, kPageScript);
  return page;
}

}  // namespace tagflow::apps::stepper
