#include "graph/placement/colocation.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graph/placement/class_labels.h"
#include "graph/placement/demands.h"
#include "graph/placement/given_way.h"
#include "graph/placement/op_work.h"
#include "graph/placement/ties.h"
#include "graph/placement/union_find.h"
#include "graph/placement/whole_loops.h"

namespace tagflow::graph {
namespace {

// How many nodes of a conflict a message explains, and how many ties.
constexpr size_t kShownInConflict = 4;
constexpr size_t kShownTies = 4;
// How many nodes of a function it explains.
constexpr size_t kShownOfFunction = 2;

bool is_state(DataType type) {
  return is_ref(type) || type == DataType::kResource;
}

// A node with what it asks for.
struct Member {
  const Node* node = nullptr;
  Demand demand;
};

}  // namespace

class Colocation::Builder {
 public:
  Builder(const Program& program, std::span<const DeviceInfo> devices,
          const KernelCatalog& catalog, const ColocationOptions& options)
      : program_(program),
        options_(options),
        result_(DeviceSets(devices.size())),
        sets_(result_.sets_),
        demands_(devices, catalog, sets_),
        of_bodies_(program.bodies.size()),
        limits_of_bodies_(program.bodies.size()),
        classes_(program.graph.end_id()),
        groups_(program.graph.end_id()) {}

  Status run() {
    TAGFLOW_RETURN_IF_ERROR(find_demands_of_bodies());
    TAGFLOW_ASSIGN(of_nodes_, demands_in(program_.graph));
    TAGFLOW_RETURN_IF_ERROR(find_classes());
    unite_classes();
    unite_state();
    TAGFLOW_RETURN_IF_ERROR(unite_loops());
    TAGFLOW_RETURN_IF_ERROR(find_sets());
    number_classes();
    join_data();
    number();
    list_constraints(program_.graph);
    for (const auto& body : program_.bodies) list_constraints(body->graph);
    result_.warnings_ = given_way_.warnings();
    return {};
  }
  Colocation take() && { return std::move(result_); }

 private:
  std::span<Node* const> nodes() const { return program_.graph.nodes(); }

  // --- Demands --------------------------------------------------------------

  // The number of the function that it calls.
  std::optional<size_t> body_of(const Node& node) const {
    if (!is_call(node)) return std::nullopt;
    const Result<int64_t> body = node.attr<int64_t>("body");
    if (!body.ok() || size_t(*body) >= of_bodies_.size()) return std::nullopt;
    return size_t(*body);
  }

  // With what a call's function needs, beside what the call itself does.
  Demand with_body(const Node& node, Demand demand) {
    const std::optional<size_t> body = body_of(node);
    if (!body) return demand;
    const Demand& more = of_bodies_[*body];
    demand.able = sets_.intersection(demand.able, more.able);
    if (!options_.soft) return demand;
    const DeviceSets::Id asked = sets_.intersection(demand.asked, more.asked);
    if (sets_.is_empty(sets_.intersection(demand.able, asked))) {
      give_way(node,
               fmt::format("which gives way to what function \"{}\" asks for",
                           program_.bodies[*body]->name));
      demand.asked = more.asked;
    } else {
      demand.asked = asked;
    }
    return demand;
  }

  // By node id. Each has a device.
  Result<std::vector<Demand>> demands_in(const Graph& graph) {
    std::vector<Demand> result(graph.end_id());
    for (const Node* node : graph.nodes()) {
      TAGFLOW_ASSIGN(Demand demand, demands_.of(*node));
      if (demand.asked != demand.said) asks_nothing_.insert(node);
      demand = with_body(*node, demand);
      TAGFLOW_RETURN_IF_ERROR(relax(*node, demand));
      result[node->id()] = demand;
    }
    return result;
  }

  // A node alone: its constraint has to fit, or to give way.
  Status relax(const Node& node, Demand& demand) {
    if (sets_.is_empty(demand.able) && options_.passes_follow)
      demand.able = DeviceSets::kAll;
    if (!sets_.is_empty(sets_.intersection(demand.able, demand.asked)))
      return {};
    if (!options_.soft || sets_.is_empty(demand.able))
      return invalid_argument("[placement] {}{}",
                              demands_.refusal(node, demand),
                              limits_of_function(node));
    const bool on_cpu =
        !sets_.is_empty(sets_.intersection(demand.able, demands_.cpus()));
    give_way(
        node, demands_.excuse(node, demand),
        on_cpu ? GivenWay::Outcome::kOnCpu : GivenWay::Outcome::kWhereItCan);
    demand.asked = on_cpu ? demands_.cpus() : DeviceSets::kAll;
    demand.said = demand.asked;
    return {};
  }

  // Bodies call one another: what one needs spreads to those that call it
  // until nothing changes. What is soft does not spread.
  Status find_demands_of_bodies() {
    std::vector<std::vector<Demand>> demands;
    for (const auto& body : program_.bodies) {
      Result<std::vector<Demand>> of_body = demands_in(body->graph);
      if (!of_body.ok())
        return std::move(of_body).status().with_prefix(
            fmt::format("[function] \"{}\": ", body->name));
      demands.push_back(std::move(of_body).value());
      // All of it is on one device anyway.
      for (const Node* node : body->graph.nodes())
        TAGFLOW_RETURN_IF_ERROR(class_labels(*node).status());
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < demands.size(); ++b) {
        // Where its calls can be.
        DeviceSets::Id able = demands_.hosts();
        limits_of_bodies_[b].clear();
        for (const Member& member : members_of_body(b, demands[b])) {
          const DeviceSets::Id fewer = sets_.intersection(able, strict(member));
          if (std::exchange(able, fewer) != fewer)
            limits_of_bodies_[b].push_back(member);
        }
        changed |= std::exchange(of_bodies_[b].able, able) != able;
      }
    }
    for (size_t b = 0; b < demands.size(); ++b) {
      TAGFLOW_ASSIGN(
          of_bodies_[b].asked,
          common_set(members_of_body(b, demands[b]), program_.bodies[b].get()));
    }
    return {};
  }

  std::vector<Member> members_of_body(size_t body,
                                      std::span<const Demand> demands) {
    std::vector<Member> members;
    for (const Node* node : program_.bodies[body]->graph.nodes())
      members.push_back({node, with_body(*node, demands[node->id()])});
    return members;
  }

  // `: in function "f", "x" asks for "/cpu:1"`: the nodes because of which a
  // call cannot be everywhere. Nothing for other nodes.
  std::string limits_of_function(const Node& node) {
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

  // --- Groups ---------------------------------------------------------------

  void unite(const Tie& tie) {
    groups_.unite(tie.node->id(), tie.other->id());
    ties_.add(tie);
  }

  Status find_classes() {
    std::unordered_map<std::string_view, const Node*> first;
    const auto join = [&](const Node& node, const Node& other,
                          std::string_view label) {
      classes_.unite(node.id(), other.id());
      ties_.add({Tie::Kind::kClass, &node, &other, label});
    };
    for (const Node* node : nodes()) {
      TAGFLOW_ASSIGN(const auto labels, class_labels(*node));
      for (const std::string_view label : labels) {
        if (!label.starts_with(kClassPrefix)) continue;
        const auto [entry, is_new] = first.emplace(label, node);
        if (entry->second != node) join(*node, *entry->second, label);
        if (!is_new) continue;
        const Node* named =
            program_.graph.find(label.substr(kClassPrefix.size()));
        if (named != nullptr && named != node) join(*node, *named, label);
      }
    }
    return {};
  }

  // Those of a class are in one group, but for those that stay on the host
  // where only accelerators can hold the others.
  void unite_classes() {
    std::unordered_map<uint32_t, DeviceSets::Id> common;  // by class
    const auto class_of = [&](const Node* node) {
      const uint32_t number = classes_.find(node->id());
      return classes_.size_of(number) > 1 ? number : kNoClass;
    };
    for (const Node* node : nodes()) {
      const uint32_t number = class_of(node);
      if (number == kNoClass) continue;
      const Demand& demand = of_nodes_[node->id()];
      DeviceSets::Id& set =
          common.emplace(number, DeviceSets::kAll).first->second;
      set = sets_.intersection(set, demand.said);
      if (!demand.stays_on_host) set = sets_.intersection(set, demand.able);
    }
    std::unordered_map<uint32_t, const Node*> first;  // by class
    for (const Node* node : nodes()) {
      const uint32_t number = class_of(node);
      if (number == kNoClass) continue;
      const DeviceSets::Id set = common.at(number);
      if (of_nodes_[node->id()].stays_on_host && !sets_.is_empty(set) &&
          sets_.is_empty(sets_.intersection(set, demands_.hosts())))
        continue;
      in_class_.push_back(node);
      groups_.unite(node->id(),
                    first.emplace(number, node).first->second->id());
    }
  }

  void number_classes() {
    std::vector<bool> has_class(program_.graph.end_id());
    for (const Node* node : in_class_)
      has_class[groups_.find(node->id())] = true;
    result_.class_of_.assign(program_.graph.end_id(), kNoClass);
    for (const Node* node : nodes()) {
      const uint32_t number = groups_.find(node->id());
      if (has_class[number]) result_.class_of_[node->id()] = number;
    }
  }

  void unite_state() {
    for (const Node* node : nodes())
      for (const Endpoint& input : node->inputs()) {
        const DataType type = input.node->output_dtypes()[size_t(input.port)];
        if (is_state(type))
          unite({Tie::Kind::kState, node, input.node,
                 is_ref(type) ? "reference" : "resource"});
      }
  }

  Status unite_loops() {
    if (std::ranges::none_of(nodes(),
                             [](const Node* node) { return node->is_enter(); }))
      return {};
    TAGFLOW_ASSIGN(frames_, FrameMap::build(program_.graph));
    whole_ = find_whole_loops(program_, frames_);
    for (size_t frame = 0; frame < whole_.size(); ++frame)
      if (!whole_[frame].empty())
        whole_[frame] =
            fmt::format("the loop of frame \"{}\" has to be on one device: {}",
                        frames_.frame(FrameId(frame)).name, whole_[frame]);
    // The first node of each whole loop, of those inside it too.
    std::vector<const Node*> first(whole_.size());
    for (const Node* node : nodes()) {
      if (const FrameId frame = whole_loop_of(*node); frame != FrameId::kRoot) {
        if (first[size_t(frame)] == nullptr) first[size_t(frame)] = node;
        if (first[size_t(frame)] != node)
          unite({Tie::Kind::kWholeLoop, node, first[size_t(frame)],
                 whole_[size_t(frame)]});
      }
      for (size_t i = 0; i < node->inputs().size(); ++i)
        if (is_variable_edge(*node, i))
          unite({Tie::Kind::kVariable, node, node->inputs()[i].node,
                 frames_.frame(frames_.of(*node)).name});
    }
    return {};
  }

  // The outermost loop that cannot be cut and has the node or what it enters,
  // or the root.
  FrameId whole_loop_of(const Node& node) const {
    FrameId frame = frames_.of(node);
    if (whole_[size_t(frame)].empty()) frame = frames_.output_of(node);
    if (whole_[size_t(frame)].empty()) return FrameId::kRoot;
    while (!whole_[size_t(frames_.frame(frame).parent)].empty())
      frame = frames_.frame(frame).parent;
    return frame;
  }

  // --- Devices of groups ----------------------------------------------------

  // Where all of them can run; a soft constraint that fits nowhere is left out.
  // They are of a group, or of a function's body.
  Result<DeviceSets::Id> common_set(std::span<const Member> members,
                                    const Program* body = nullptr) {
    DeviceSets::Id set = DeviceSets::kAll;
    for (size_t i = 0; i < members.size(); ++i) {
      const Demand& demand = members[i].demand;
      set = sets_.intersection(set, demand.able);
      if (!options_.soft) set = sets_.intersection(set, demand.asked);
      if (sets_.is_empty(set)) return conflict(members.first(i + 1), body);
    }
    if (!options_.soft) return set;
    // Of those that ask for the same, the same is said.
    std::unordered_map<DeviceSets::Id, std::string> reasons;
    for (size_t i = 0; i < members.size(); ++i) {
      const DeviceSets::Id asked = members[i].demand.asked;
      const DeviceSets::Id fewer = sets_.intersection(set, asked);
      if (sets_.is_empty(fewer)) {
        std::string& reason = reasons[asked];
        if (reason.empty())
          reason = "which gives way to a node on the same device: " +
                   explain(culprit(members, i));
        give_way(*members[i].node, reason);
      } else {
        set = fewer;
      }
    }
    return set;
  }

  // What of the member counts in a conflict.
  DeviceSets::Id strict(const Member& member) {
    return options_.soft
               ? member.demand.able
               : sets_.intersection(member.demand.able, member.demand.asked);
  }

  std::string explain(const Member& member) {
    return demands_.explain(*member.node, member.demand) +
           limits_of_function(*member.node);
  }

  // Another member that alone rules out what member `i` asks for; where there
  // is none, its neighbour.
  const Member& culprit(std::span<const Member> members, size_t i) {
    for (const Member& other : members) {
      const DeviceSets::Id both =
          sets_.intersection(other.demand.able, other.demand.asked);
      if (&other != &members[i] &&
          sets_.is_empty(sets_.intersection(both, members[i].demand.asked)))
        return other;
    }
    return members[i == 0 ? members.size() - 1 : i - 1];
  }

  // The last of the members leaves no device. Names another one where these two
  // exclude one another, else those that made the choice smaller.
  Status conflict(std::span<const Member> members, const Program* body) {
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
        "[placement] nodes {} must be on one device, and none will do: {}; "
        "they are together because {}",
        names, reasons,
        body == nullptr
            ? ties_of(shown)
            : fmt::format("function \"{}\" runs as one", body->name));
  }

  // What leads from each of them to the next.
  std::string ties_of(std::span<const Member* const> members) const {
    std::vector<std::string> reasons;
    for (size_t i = 1; i < members.size(); ++i)
      for (const Tie& tie :
           ties_.between(*members[i - 1]->node, *members[i]->node)) {
        std::string reason = tie.to_string();
        if (std::ranges::find(reasons, reason) == reasons.end())
          reasons.push_back(std::move(reason));
      }
    const size_t more = reasons.size() - std::min(reasons.size(), kShownTies);
    reasons.resize(reasons.size() - more);
    return fmt::format("{}{}", fmt::join(reasons, ", "),
                       more == 0 ? "" : fmt::format(", ... ({} more)", more));
  }

  Status find_sets() {
    // Most groups are of one node; the others' nodes, sorted by group.
    std::vector<std::pair<uint32_t, const Node*>> grouped;
    set_of_root_.resize(program_.graph.end_id());
    for (const Node* node : nodes()) {
      const Demand& demand = of_nodes_[node->id()];
      const uint32_t root = groups_.find(node->id());
      set_of_root_[node->id()] = sets_.intersection(demand.able, demand.asked);
      if (groups_.size_of(root) > 1) grouped.emplace_back(root, node);
    }
    std::ranges::stable_sort(grouped, {},
                             [](const auto& entry) { return entry.first; });
    std::vector<Member> members;
    for (size_t i = 0; i < grouped.size(); ++i) {
      const auto [root, node] = grouped[i];
      members.push_back({node, of_nodes_[node->id()]});
      if (i + 1 < grouped.size() && grouped[i + 1].first == root) continue;
      TAGFLOW_ASSIGN(set_of_root_[root], common_set(members));
      members.clear();
    }
    return {};
  }

  // --- Control flow ---------------------------------------------------------

  void join(const Node& node, const Node* data) {
    if (data == nullptr) return;
    const uint32_t a = groups_.find(node.id());
    const uint32_t b = groups_.find(data->id());
    if (a == b) return;
    const DeviceSets::Id common =
        sets_.intersection(set_of_root_[a], set_of_root_[b]);
    if (!sets_.is_empty(common)) set_of_root_[groups_.unite(a, b)] = common;
  }

  void join_data() {
    std::vector<const Node*> first_reader(program_.graph.end_id());
    for (const Node* node : nodes())
      for (const Endpoint& input : node->inputs())
        if (first_reader[input.node->id()] == nullptr)
          first_reader[input.node->id()] = node;
    for (const Node* node : nodes()) {
      if (node->is_switch() || node->is_exit() || node->op() == "_SwitchN")
        join(*node, node->inputs()[0].node);
      if (node->is_enter() || node->is_next_iteration())
        join(*node, first_reader[node->id()]);
    }
  }

  // --- The result -----------------------------------------------------------

  void number() {
    constexpr uint32_t kNone = ~uint32_t(0);
    std::vector<uint32_t> number_of(program_.graph.end_id(), kNone);
    result_.group_of_.resize(program_.graph.end_id());
    for (const Node* node : nodes()) {
      const uint32_t root = groups_.find(node->id());
      if (number_of[root] == kNone) {
        number_of[root] = uint32_t(result_.set_of_.size());
        result_.set_of_.push_back(set_of_root_[root]);
      }
      result_.group_of_[node->id()] = number_of[root];
    }
  }

  void list_constraints(const Graph& graph) {
    using What = Counting::What;
    auto& counts = result_.counts_.emplace_back(graph.end_id());
    if (given_way_.empty() && asks_nothing_.empty()) return;
    for (const Node* node : graph.nodes()) {
      What& what = counts[node->id()].what;
      if (asks_nothing_.contains(node)) {
        what = What::kNothing;
      } else if (given_way_.contains(*node)) {
        what = given_way_.outcome(*node) == GivenWay::Outcome::kOnCpu
                   ? What::kAnyCpu
                   : What::kNothing;
      }
    }
  }

  // The node's constraint counts no longer.
  void give_way(const Node& node, std::string_view reason,
                GivenWay::Outcome outcome = GivenWay::Outcome::kWithOthers) {
    given_way_.add(node, reason, outcome);
  }

  const Program& program_;
  const ColocationOptions& options_;
  Colocation result_;
  DeviceSets& sets_;
  Demands demands_;
  std::vector<Demand> of_nodes_;   // by node id
  std::vector<Demand> of_bodies_;  // what a call of each asks for
  // Of each body the nodes because of which a call cannot be everywhere.
  std::vector<std::vector<Member>> limits_of_bodies_;
  GivenWay given_way_;
  // What they say does not count: Note [What stays on the host].
  std::unordered_set<const Node*> asks_nothing_;
  FrameMap frames_;                 // empty where there are no loops
  std::vector<std::string> whole_;  // by frame, that and why it is not cut
  Ties ties_;
  UnionFind classes_;
  std::vector<const Node*> in_class_;
  UnionFind groups_;
  std::vector<DeviceSets::Id> set_of_root_;
};

std::string_view Colocation::Counting::text(const Node& node) const {
  if (what == What::kAll) return node.device();
  return what == What::kAnyCpu ? "/device:CPU:*" : "";
}

Result<Colocation> Colocation::build(const Program& program,
                                     std::span<const DeviceInfo> devices,
                                     const KernelCatalog& catalog,
                                     const ColocationOptions& options) {
  if (devices.empty())
    return invalid_argument("[placement] there are no devices");
  Builder builder(program, devices, catalog, options);
  TAGFLOW_RETURN_IF_ERROR(builder.run());
  return std::move(builder).take();
}

}  // namespace tagflow::graph
