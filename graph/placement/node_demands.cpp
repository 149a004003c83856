#include "graph/placement/node_demands.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "graph/analysis/class_labels.h"
#include "graph/analysis/node_queries.h"
#include "graph/placement/op_work.h"

namespace tagflow::graph {
namespace {

// How many nodes of a conflict a message explains.
constexpr size_t kShownInConflict = 4;
// How many nodes of a function it explains.
constexpr size_t kShownOfFunction = 2;

}  // namespace

NodeDemands::NodeDemands(const Program& program,
                         std::span<const DeviceInfo> devices,
                         const KernelCatalog& catalog,
                         const ColocationOptions& options, DeviceSets& sets)
    : program_(program),
      options_(options),
      sets_(sets),
      demands_(devices, catalog, sets),
      of_bodies_(program.bodies.size()),
      limits_of_bodies_(program.bodies.size()) {}

Status NodeDemands::find() {
  TAGFLOW_RETURN_IF_ERROR(find_demands_of_bodies());
  TAGFLOW_ASSIGN(of_nodes_, demands_in(program_.graph));
  for (const Endpoint& fetch : program_.fetches)
    if (fetch.node->output_dtypes()[size_t(fetch.port)] == DataType::kVariant) {
      Demand& demand = of_nodes_[fetch.node->id()];
      demand.runnable = sets_.intersection(demand.runnable, demands_.hosts());
      demand.stays_on_host = true;
    }
  return {};
}

std::optional<size_t> NodeDemands::body_of(const Node& node) const {
  if (!is_call(node)) return std::nullopt;
  const Result<int64_t> body = node.attr<int64_t>("body");
  if (!body.ok() || size_t(*body) >= of_bodies_.size()) return std::nullopt;
  return size_t(*body);
}

Demand NodeDemands::with_body(const Node& node, Demand demand) {
  const std::optional<size_t> body = body_of(node);
  if (!body) return demand;
  const Demand& more = of_bodies_[*body];
  demand.runnable = sets_.intersection(demand.runnable, more.runnable);
  if (!options_.soft) return demand;
  const DeviceSets::Id asked =
      sets_.intersection(demand.requested, more.requested);
  if (sets_.is_empty(sets_.intersection(demand.runnable, asked))) {
    relax(node, fmt::format("which gives way to what function \"{}\" asks for",
                            program_.bodies[*body]->name));
    demand.requested = more.requested;
  } else {
    demand.requested = asked;
  }
  return demand;
}

Result<std::vector<Demand>> NodeDemands::demands_in(const Graph& graph) {
  std::vector<Demand> result(graph.end_id());
  for (const Node* node : graph.nodes()) {
    TAGFLOW_ASSIGN(Demand demand, demands_.of(*node));
    if (demand.requested != demand.matching) asks_nothing_.insert(node);
    demand = with_body(*node, demand);
    TAGFLOW_RETURN_IF_ERROR(relax(*node, demand));
    result[node->id()] = demand;
  }
  return result;
}

Status NodeDemands::relax(const Node& node, Demand& demand) {
  if (sets_.is_empty(demand.runnable) && options_.passes_follow)
    demand.runnable = DeviceSets::kAll;
  if (!sets_.is_empty(sets_.intersection(demand.runnable, demand.requested)))
    return {};
  if (!options_.soft || sets_.is_empty(demand.runnable))
    return invalid_argument("[placement] {}{}", demands_.refusal(node, demand),
                            limits_of_function(node));
  const bool on_cpu =
      !sets_.is_empty(sets_.intersection(demand.runnable, demands_.cpus()));
  relax(node, demands_.excuse(node, demand),
        on_cpu ? RelaxedConstraints::Outcome::kOnCpu
               : RelaxedConstraints::Outcome::kWhereItCan);
  demand.requested = on_cpu ? demands_.cpus() : DeviceSets::kAll;
  demand.matching = demand.requested;
  return {};
}

// Bodies call one another: the demands of a body spread to its callers until
// nothing changes. Soft constraints do not spread.
Status NodeDemands::find_demands_of_bodies() {
  std::vector<std::vector<Demand>> demands;
  for (const auto& body : program_.bodies) {
    Result<std::vector<Demand>> of_body = demands_in(body->graph);
    if (!of_body.ok())
      return std::move(of_body).status().with_prefix(
          fmt::format("[function] \"{}\": ", body->name));
    demands.push_back(std::move(of_body).value());
    // All of the body is on one device anyway.
    for (const Node* node : body->graph.nodes())
      TAGFLOW_RETURN_IF_ERROR(class_labels(*node).status());
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = 0; b < demands.size(); ++b) {
      // The devices where its calls can be.
      DeviceSets::Id able = demands_.hosts();
      limits_of_bodies_[b].clear();
      for (const Member& member : members_of_body(b, demands[b])) {
        const DeviceSets::Id fewer = sets_.intersection(able, strict(member));
        if (std::exchange(able, fewer) != fewer)
          limits_of_bodies_[b].push_back(member);
      }
      changed |= std::exchange(of_bodies_[b].runnable, able) != able;
    }
  }
  for (size_t b = 0; b < demands.size(); ++b) {
    const auto why_together = [&](std::span<const Member* const>) {
      return fmt::format("function \"{}\" runs on one device",
                         program_.bodies[b]->name);
    };
    TAGFLOW_ASSIGN(of_bodies_[b].requested,
                   common_set(members_of_body(b, demands[b]), why_together));
  }
  return {};
}

std::vector<Member> NodeDemands::members_of_body(
    size_t body, std::span<const Demand> demands) {
  std::vector<Member> members;
  for (const Node* node : program_.bodies[body]->graph.nodes())
    members.push_back({node, with_body(*node, demands[node->id()])});
  return members;
}

std::string NodeDemands::limits_of_function(const Node& node) const {
  std::string text;
  const std::optional<size_t> body = body_of(node);
  if (!body) return text;
  std::vector<size_t> open = {*body};
  size_t shown = 0;
  for (size_t i = 0; i < open.size(); ++i)
    for (const Member& member : limits_of_bodies_[open[i]]) {
      if (const auto called = body_of(*member.node)) {
        if (std::ranges::find(open, *called) == open.end())
          open.push_back(*called);
      } else if (shown++ < kShownOfFunction) {
        text +=
            fmt::format("{} in function \"{}\", {}", text.empty() ? ":" : ";",
                        program_.bodies[open[i]]->name,
                        demands_.explain(*member.node, member.demand));
      }
    }
  return text;
}

Result<DeviceSets::Id> NodeDemands::common_set(
    std::span<const Member> members, const WhyTogether& why_together) {
  DeviceSets::Id set = DeviceSets::kAll;
  for (size_t i = 0; i < members.size(); ++i) {
    set = sets_.intersection(set, strict(members[i]));
    if (sets_.is_empty(set))
      return conflict(members.first(i + 1), why_together);
  }
  const auto is_soft = [this](const Member& member) {
    return sets_.intersection(member.demand.runnable,
                              member.demand.requested) != strict(member);
  };
  if (std::ranges::none_of(members, is_soft)) return set;
  // Nodes with the same demand get the same reason.
  std::unordered_map<DeviceSets::Id, std::string> reasons;
  // Nodes whose constraints were relaxed come last.
  std::vector<size_t> order;
  for (const bool was_relaxed : {false, true})
    for (size_t i = 0; i < members.size(); ++i)
      if (relaxed_.contains(*members[i].node) == was_relaxed)
        order.push_back(i);
  for (const size_t i : order) {
    const DeviceSets::Id asked = members[i].demand.requested;
    const DeviceSets::Id fewer = sets_.intersection(set, asked);
    if (sets_.is_empty(fewer)) {
      // If its object is on a host, the node is treated like nodes that stay
      // there.
      if (has_handles(*members[i].node) &&
          sets_.intersection(set, demands_.hosts()) == set &&
          sets_.is_empty(sets_.intersection(asked, demands_.hosts()))) {
        asks_nothing_.insert(members[i].node);
        continue;
      }
      std::string& reason = reasons[asked];
      if (reason.empty())
        reason = "which gives way to a node on the same device: " +
                 explain(culprit(members, i));
      relax(*members[i].node, reason);
    } else {
      set = fewer;
    }
  }
  return set;
}

DeviceSets::Id NodeDemands::strict(const Member& member) const {
  // State is not moved: constraints of the nodes that use it are relaxed if
  // necessary.
  return options_.soft || has_handles(*member.node)
             ? member.demand.runnable
             : sets_.intersection(member.demand.runnable,
                                  member.demand.requested);
}

std::string NodeDemands::explain(const Member& member) const {
  return demands_.explain(*member.node, member.demand) +
         limits_of_function(*member.node);
}

const Member& NodeDemands::culprit(std::span<const Member> members,
                                   size_t i) const {
  for (const Member& other : members) {
    const DeviceSets::Id both =
        sets_.intersection(other.demand.runnable, other.demand.requested);
    if (&other != &members[i] &&
        sets_.is_empty(sets_.intersection(both, members[i].demand.requested)))
      return other;
  }
  return members[i == 0 ? members.size() - 1 : i - 1];
}

Status NodeDemands::conflict(std::span<const Member> members,
                             const WhyTogether& why_together) const {
  const Member& last = members.back();
  std::vector<const Member*> shown;
  for (const Member& member : members.first(members.size() - 1)) {
    if (!sets_.is_empty(sets_.intersection(strict(member), strict(last))))
      continue;
    shown = {&member};
    break;
  }
  if (shown.empty()) {
    DeviceSets::Id set = DeviceSets::kAll;
    for (const Member& member : members.first(members.size() - 1)) {
      const DeviceSets::Id fewer = sets_.intersection(set, strict(member));
      if (fewer != set && shown.size() + 1 < kShownInConflict)
        shown.push_back(&member);
      set = fewer;
    }
  }
  shown.push_back(&last);
  std::string names, reasons;
  for (const Member* member : shown) {
    if (!names.empty()) names += member == &last ? " and " : ", ";
    names += fmt::format("\"{}\"", member->node->name());
    reasons += (reasons.empty() ? "" : "; ") + explain(*member);
  }
  return invalid_argument(
      "[placement] nodes {} must be on one device, and none is possible: {}; "
      "they are together because {}",
      names, reasons, why_together(shown));
}

std::vector<Counting> NodeDemands::counting_in(const Graph& graph) const {
  std::vector<Counting> counting(graph.end_id());
  if (relaxed_.empty() && asks_nothing_.empty()) return counting;
  for (const Node* node : graph.nodes()) {
    Counting& what = counting[node->id()];
    if (asks_nothing_.contains(node)) {
      what = Counting::kNothing;
    } else if (relaxed_.contains(*node)) {
      what = relaxed_.outcome(*node) == RelaxedConstraints::Outcome::kOnCpu
                 ? Counting::kAnyCpu
                 : Counting::kNothing;
    }
  }
  return counting;
}

}  // namespace tagflow::graph
