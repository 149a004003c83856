#include "graph/placement/colocation.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/analysis/class_labels.h"
#include "graph/analysis/whole_loops.h"
#include "graph/placement/node_demands.h"
#include "graph/placement/ties.h"
#include "graph/placement/union_find.h"

namespace tagflow::graph {
namespace {

// How many ties of a conflict a message lists.
constexpr size_t kShownTies = 4;

bool is_state(DataType type) {
  return is_ref(type) || type == DataType::kResource ||
         type == DataType::kVariant;
}

std::string_view word_for(DataType type) {
  if (is_ref(type)) return "reference";
  return type == DataType::kVariant ? "variant" : "resource";
}

}  // namespace

class Colocation::Builder {
 public:
  Builder(const Program& program, std::span<const DeviceInfo> devices,
          const KernelCatalog& catalog, const ColocationOptions& options)
      : program_(program),
        result_(DeviceSets(devices.size())),
        sets_(result_.sets_),
        demands_(program, devices, catalog, options, sets_),
        classes_(program.graph.end_id()),
        groups_(program.graph.end_id()) {}

  Status run() {
    TAGFLOW_RETURN_IF_ERROR(demands_.find());
    TAGFLOW_RETURN_IF_ERROR(find_classes());
    unite_state();
    unite_classes();
    TAGFLOW_RETURN_IF_ERROR(unite_loops());
    TAGFLOW_RETURN_IF_ERROR(find_sets());
    number_classes();
    join_data();
    number();
    result_.counting_.push_back(demands_.counting_in(program_.graph));
    for (const auto& body : program_.bodies)
      result_.counting_.push_back(demands_.counting_in(body->graph));
    result_.warnings_ = demands_.warnings();
    return {};
  }
  Colocation take() && { return std::move(result_); }

 private:
  std::span<Node* const> nodes() const { return program_.graph.nodes(); }

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

  // The devices on which all users of the node's resource can run and are
  // allowed to; by number in groups_, which has only these groups so far. Users
  // that stay on the host keep all of them there.
  struct State {
    DeviceSets::Id set = DeviceSets::kAll;
    bool stays_on_host = false;
  };
  std::vector<State> find_states() {
    std::vector<State> states(program_.graph.end_id());
    for (const Node* node : nodes()) {
      const Demand& demand = demands_.of(*node);
      State& state = states[groups_.find(node->id())];
      state.stays_on_host |= demand.stays_on_host;
      const DeviceSets::Id own =
          demand.stays_on_host
              ? demand.matching
              : sets_.intersection(demand.matching, demand.runnable);
      state.set = sets_.intersection(state.set, own);
    }
    return states;
  }

  // Nodes of a class are in one group, except for those that stay on the host
  // while only accelerators can run the others.
  void unite_classes() {
    const std::vector<State> states = find_states();
    std::vector<const State*> state_of(program_.graph.end_id());
    for (const Node* node : nodes())
      state_of[node->id()] = &states[groups_.find(node->id())];
    std::unordered_map<uint32_t, DeviceSets::Id> common;  // by class
    const auto class_of = [&](const Node* node) {
      const uint32_t number = classes_.find(node->id());
      return classes_.size_of(number) > 1 ? number : kNoClass;
    };
    for (const Node* node : nodes()) {
      const uint32_t number = class_of(node);
      if (number == kNoClass) continue;
      DeviceSets::Id& set =
          common.emplace(number, DeviceSets::kAll).first->second;
      set = sets_.intersection(set, state_of[node->id()]->set);
    }
    std::unordered_map<uint32_t, const Node*> first;  // by class
    for (const Node* node : nodes()) {
      const uint32_t number = class_of(node);
      if (number == kNoClass) continue;
      const DeviceSets::Id set = common.at(number);
      if (state_of[node->id()]->stays_on_host && !sets_.is_empty(set) &&
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
          unite({Tie::Kind::kState, node, input.node, word_for(type)});
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
    // The first node of each whole loop, including those inside it.
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

  // The outermost loop that cannot be cut and contains the node, or what it
  // enters; otherwise the root.
  FrameId whole_loop_of(const Node& node) const {
    FrameId frame = frames_.of(node);
    if (whole_[size_t(frame)].empty()) frame = frames_.output_of(node);
    if (whole_[size_t(frame)].empty()) return FrameId::kRoot;
    while (!whole_[size_t(frames_.frame(frame).parent)].empty())
      frame = frames_.frame(frame).parent;
    return frame;
  }

  // --- Devices of groups ----------------------------------------------------

  // The ties from each of them to the next.
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
      const Demand& demand = demands_.of(*node);
      const uint32_t root = groups_.find(node->id());
      set_of_root_[node->id()] =
          sets_.intersection(demand.runnable, demand.requested);
      if (groups_.size_of(root) > 1) grouped.emplace_back(root, node);
    }
    std::ranges::stable_sort(grouped, {},
                             [](const auto& entry) { return entry.first; });
    const auto why_together = [&](std::span<const Member* const> conflicting) {
      return ties_of(conflicting);
    };
    std::vector<Member> members;
    for (size_t i = 0; i < grouped.size(); ++i) {
      const auto [root, node] = grouped[i];
      members.push_back({node, demands_.of(*node)});
      if (i + 1 < grouped.size() && grouped[i + 1].first == root) continue;
      TAGFLOW_ASSIGN(set_of_root_[root],
                     demands_.common_set(members, why_together));
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
      if (node->is_switch() || node->is_exit())
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

  const Program& program_;
  Colocation result_;
  DeviceSets& sets_;
  NodeDemands demands_;
  FrameMap frames_;                 // empty if there are no loops
  std::vector<std::string> whole_;  // by frame, why it is not cut
  Ties ties_;
  UnionFind classes_;
  std::vector<const Node*> in_class_;
  UnionFind groups_;
  std::vector<DeviceSets::Id> set_of_root_;
};

std::string_view Colocation::text(const Node& node, Counting counting) {
  if (counting == Counting::kAll) return node.device();
  return counting == Counting::kAnyCpu ? "/device:CPU:*" : "";
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
