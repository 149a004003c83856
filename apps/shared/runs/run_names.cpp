#include "apps/shared/runs/run_names.h"

#include <algorithm>

#include "actors/plan/distribute.h"
#include "graph/analysis/frames.h"
#include "graph/op_registry.h"

namespace tagflow::apps {
namespace {

std::string suggestion(const std::string& name,
                       const std::vector<std::string>& names) {
  const std::string nearest = graph::nearest_name(name, names);
  return nearest.empty() ? "" : fmt::format(", did you mean {:?}?", nearest);
}

}  // namespace

Result<RunNames> RunNames::of(actors::Session& session,
                              const std::vector<std::string>& feeds,
                              const std::vector<std::string>& fetches,
                              const std::vector<std::string>& targets) {
  RunNames names;
  TAGFLOW_RETURN_IF_ERROR(names.add(session, feeds, fetches, targets));
  for (const graph::Node* node : session.graph().nodes())
    names.of_graph_.insert(node->name());
  return names;
}

Status RunNames::add(actors::Session& session,
                     const std::vector<std::string>& feeds,
                     const std::vector<std::string>& fetches,
                     const std::vector<std::string>& targets) {
  TAGFLOW_ASSIGN(const actors::Distribution distribution,
                 session.explain(feeds, fetches, targets));
  for (const graph::Partition& partition : distribution.partitions) {
    TAGFLOW_RETURN_IF_ERROR(add(partition.program));
    for (const auto& body : partition.program.bodies) {
      frames_.push_back(body->name);
      TAGFLOW_RETURN_IF_ERROR(add(*body));
    }
  }
  return {};
}

Status RunNames::add(const graph::Program& program) {
  TAGFLOW_ASSIGN(const graph::FrameMap map,
                 graph::FrameMap::build(program.graph));
  for (const graph::StaticFrame& frame : map.frames())
    if (!frame.name.empty()) frames_.push_back(frame.name);
  for (const graph::Node* node : program.graph.nodes())
    outputs_.emplace(node->name(), node->num_outputs());
  return {};
}

Status RunNames::check_frame(const std::string& name) const {
  if (std::ranges::find(frames_, name) != frames_.end()) return {};
  if (frames_.empty())
    return error(Code::kNotFound, "no frame {:?}: what runs has no loop", name);
  return error(Code::kNotFound, "no frame {:?}{}", name,
               suggestion(name, frames_));
}

Status RunNames::check_tensor(const std::string& node, int port) const {
  const auto found = outputs_.find(node);
  if (found == outputs_.end() && of_graph_.contains(node))
    return error(Code::kNotFound,
                 "node {:?} does not run: nothing that is fetched needs it, or "
                 "a pass has replaced it",
                 node);
  if (found == outputs_.end()) {
    std::vector<std::string> nodes;
    for (const auto& [name, outputs] : outputs_) nodes.push_back(name);
    std::ranges::sort(nodes);
    return error(Code::kNotFound, "no node {:?}{}", node,
                 suggestion(node, nodes));
  }
  if (port < found->second) return {};
  return invalid_argument("{:?}: node {:?} has {} output(s)",
                          fmt::format("{}:{}", node, port), node,
                          found->second);
}

}  // namespace tagflow::apps
