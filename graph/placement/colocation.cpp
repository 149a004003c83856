#include "graph/placement/colocation.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graph/placement/demands.h"
#include "graph/placement/op_work.h"
#include "graph/placement/union_find.h"
#include "graph/placement/whole_loops.h"

namespace tagflow::graph {
namespace {

constexpr std::string_view kClassPrefix = "loc:@";
// How many nodes of a conflict a message explains.
constexpr size_t kShownInConflict = 4;
// How many constraints that give way are named.
constexpr size_t kMaxWarnings = 100;

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
        groups_(program.graph.end_id()) {}

  Status run() {
    TAGFLOW_RETURN_IF_ERROR(find_demands_of_bodies());
    TAGFLOW_ASSIGN(of_nodes_, demands_in(program_.graph));
    TAGFLOW_RETURN_IF_ERROR(unite_classes());
    unite_state();
    TAGFLOW_RETURN_IF_ERROR(unite_loops());
    TAGFLOW_RETURN_IF_ERROR(find_sets());
    join_data();
    number();
    return {};
  }
  Colocation take() && { return std::move(result_); }

 private:
  std::span<Node* const> nodes() const { return program_.graph.nodes(); }

  // --- Demands --------------------------------------------------------------

  // With what a call's function needs, beside what the call itself does.
  Demand with_body(const Node& node, Demand demand) {
    if (!is_call(node)) return demand;
    const Result<int64_t> body = node.attr<int64_t>("body");
    if (!body.ok() || size_t(*body) >= of_bodies_.size()) return demand;
    const Demand& more = of_bodies_[size_t(*body)];
    demand.able = sets_.intersection(demand.able, more.able);
    if (!options_.soft) return demand;
    const DeviceSets::Id asked = sets_.intersection(demand.asked, more.asked);
    if (sets_.is_empty(sets_.intersection(demand.able, asked))) {
      give_way(node, [&] {
        return fmt::format(
            "node \"{}\" asks for \"{}\", which gives way to what its "
            "function asks for",
            node.name(), node.device());
      });
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
      demand = with_body(*node, demand);
      TAGFLOW_RETURN_IF_ERROR(relax(*node, demand));
      result[node->id()] = demand;
    }
    return result;
  }

  // A node alone: its constraint has to fit, or to give way.
  Status relax(const Node& node, Demand& demand) {
    if (!sets_.is_empty(sets_.intersection(demand.able, demand.asked)))
      return {};
    if (!options_.soft || sets_.is_empty(demand.able))
      return invalid_argument("[placement] {}", demands_.refusal(node, demand));
    const bool on_cpu =
        !sets_.is_empty(sets_.intersection(demand.able, demands_.cpus()));
    give_way(node, [&] {
      return fmt::format("{}; it is placed {}", demands_.refusal(node, demand),
                         on_cpu ? "on a CPU" : "where it can run");
    });
    demand.asked = on_cpu ? demands_.cpus() : DeviceSets::kAll;
    return {};
  }

  // Bodies call one another: what one needs spreads to those that call it
  // until nothing changes. What is soft does not spread.
  Status find_demands_of_bodies() {
    std::vector<std::vector<Demand>> demands;
    for (const auto& body : program_.bodies) {
      TAGFLOW_ASSIGN(std::vector<Demand> of_body, demands_in(body->graph));
      demands.push_back(std::move(of_body));
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < demands.size(); ++b) {
        DeviceSets::Id able = DeviceSets::kAll;
        for (const Member& member : members_of_body(b, demands[b]))
          able = sets_.intersection(able, strict(member));
        changed |= std::exchange(of_bodies_[b].able, able) != able;
      }
    }
    for (size_t b = 0; b < demands.size(); ++b) {
      TAGFLOW_ASSIGN(of_bodies_[b].asked,
                     common_set(members_of_body(b, demands[b])));
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

  // --- Groups ---------------------------------------------------------------

  void unite(const Node& a, const Node& b) { groups_.unite(a.id(), b.id()); }

  Status unite_classes() {
    std::unordered_map<std::string_view, const Node*> first;
    for (const Node* node : nodes()) {
      const auto it = node->attrs().find("_class");
      if (it == node->attrs().end()) continue;
      if (it->second.get_if<EmptyList>() != nullptr) continue;
      const auto* labels = it->second.get_if<std::vector<std::string>>();
      if (labels == nullptr)
        return invalid_argument(
            "[placement] node \"{}\": attribute \"_class\" is of type {}, not "
            "list(string)",
            node->name(), it->second.type_name());
      for (const std::string_view label : *labels) {
        if (!label.starts_with(kClassPrefix)) continue;
        const std::string_view name = label.substr(kClassPrefix.size());
        const auto [entry, is_new] = first.emplace(name, node);
        unite(*node, *entry->second);
        if (!is_new) continue;
        if (const Node* named = program_.graph.find(name)) unite(*node, *named);
      }
    }
    return {};
  }

  void unite_state() {
    for (const Node* node : nodes())
      for (const Endpoint& input : node->inputs())
        if (is_state(input.node->output_dtypes()[size_t(input.port)]))
          unite(*node, *input.node);
  }

  Status unite_loops() {
    if (std::ranges::none_of(nodes(),
                             [](const Node* node) { return node->is_enter(); }))
      return {};
    TAGFLOW_ASSIGN(frames_, FrameMap::build(program_.graph));
    whole_ = find_whole_loops(program_, frames_);
    std::vector<const Node*> first(whole_.size());
    for (const Node* node : nodes()) {
      if (const FrameId frame = whole_loop_of(*node); frame != FrameId::kRoot) {
        if (first[size_t(frame)] == nullptr) first[size_t(frame)] = node;
        unite(*node, *first[size_t(frame)]);
      }
      for (size_t i = 0; i < node->inputs().size(); ++i)
        if (is_variable_edge(*node, i)) unite(*node, *node->inputs()[i].node);
    }
    return {};
  }

  // The outermost loop that cannot be cut and has the node or what it enters,
  // or the root.
  FrameId whole_loop_of(const Node& node) const {
    if (whole_.empty() || !program_.graph.owns(&node)) return FrameId::kRoot;
    FrameId frame = frames_.of(node);
    if (whole_[size_t(frame)].empty()) frame = frames_.output_of(node);
    if (whole_[size_t(frame)].empty()) return FrameId::kRoot;
    while (!whole_[size_t(frames_.frame(frame).parent)].empty())
      frame = frames_.frame(frame).parent;
    return frame;
  }

  // --- Devices of groups ----------------------------------------------------

  // Where all of them can run; a soft constraint that fits nowhere is left out.
  Result<DeviceSets::Id> common_set(std::span<const Member> members) {
    DeviceSets::Id set = DeviceSets::kAll;
    for (size_t i = 0; i < members.size(); ++i) {
      const Demand& demand = members[i].demand;
      set = sets_.intersection(set, demand.able);
      if (!options_.soft) set = sets_.intersection(set, demand.asked);
      if (sets_.is_empty(set)) return conflict(members.first(i + 1));
    }
    if (!options_.soft) return set;
    for (size_t i = 0; i < members.size(); ++i) {
      const DeviceSets::Id fewer =
          sets_.intersection(set, members[i].demand.asked);
      if (sets_.is_empty(fewer)) {
        give_way(*members[i].node, [&] {
          const Member& other = culprit(members, i);
          return fmt::format(
              "nodes \"{}\" and \"{}\" must be on one device; {}, which gives "
              "way: {}",
              members[i].node->name(), other.node->name(), explain(members[i]),
              explain(other));
        });
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

  std::string explain(const Member& member) const {
    return demands_.explain(*member.node, member.demand);
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
  Status conflict(std::span<const Member> members) {
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
    std::vector<FrameId> loops;
    for (const Member* member : shown) {
      if (!names.empty()) names += member == &last ? " and " : ", ";
      names += fmt::format("\"{}\"", member->node->name());
      reasons += (reasons.empty() ? "" : "; ") + explain(*member);
      const FrameId loop = whole_loop_of(*member->node);
      if (loop != FrameId::kRoot && !std::ranges::count(loops, loop))
        loops.push_back(loop);
    }
    for (const FrameId loop : loops)
      reasons +=
          fmt::format("; the loop of frame \"{}\" has to be on one device: {}",
                      frames_.frame(loop).name, whole_[size_t(loop)]);
    return invalid_argument(
        "[placement] nodes {} must be on one device, and none will do: {}",
        names, reasons);
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
    result_.constrained_.resize(program_.graph.end_id());
    for (const Node* node : nodes()) {
      const uint32_t root = groups_.find(node->id());
      if (number_of[root] == kNone) {
        number_of[root] = uint32_t(result_.set_of_.size());
        result_.set_of_.push_back(set_of_root_[root]);
      }
      result_.group_of_[node->id()] = number_of[root];
      result_.constrained_[node->id()] = !node->device().empty();
    }
    if (gave_way_.size() > kMaxWarnings)
      result_.warnings_.push_back(
          fmt::format("the constraints of {} more nodes gave way",
                      gave_way_.size() - kMaxWarnings));
    for (const Node* node : gave_way_)
      if (program_.graph.owns(node)) result_.constrained_[node->id()] = false;
  }

  // The node's constraint counts no longer; make() says why. Of many, the
  // first are warned of one by one.
  template <class Make>
  void give_way(const Node& node, const Make& make) {
    if (!gave_way_.insert(&node).second) return;
    if (gave_way_.size() <= kMaxWarnings) result_.warnings_.push_back(make());
  }

  const Program& program_;
  const ColocationOptions& options_;
  Colocation result_;
  DeviceSets& sets_;
  Demands demands_;
  std::vector<Demand> of_nodes_;    // by node id
  std::vector<Demand> of_bodies_;   // what a call of each asks for
  FrameMap frames_;                 // empty where there are no loops
  std::vector<std::string> whole_;  // by frame, why it cannot be cut
  UnionFind groups_;
  std::vector<DeviceSets::Id> set_of_root_;
  std::unordered_set<const Node*> gave_way_;
};

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
