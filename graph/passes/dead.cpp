// Dead branches.
//
// A token may become live only if all inputs and control inputs of its node may
// be live; for a Merge, one input; and for a Switch with a constant predicate
// only one output may. Nodes that cannot be reached in this way from the nodes
// without inputs are dead in every run; this includes loops without a live
// Enter. A Merge loses its dead inputs, and becomes an Identity if one is left;
// so does such a Switch if nothing needs its dead output.
//
// A fetch that is certainly dead stays, and gives its error; so do control
// inputs of a ControlTrigger or a Merge.
#include "graph/analysis/prune.h"
#include "graph/known_value.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

// Finds the tokens that may become live.
class MayBeLive {
 public:
  explicit MayBeLive(const Graph& graph) {
    NodeId last = 0;
    for (const Node* node : graph.nodes()) last = std::max(last, node->id());
    readers_.resize(size_t(last) + 1);
    waits_.resize(size_t(last) + 1);
    std::vector<const Node*> open;
    for (const Node* node : graph.nodes()) {
      uint32_t& waits = waits_[node->id()];
      for (const Endpoint& input : node->inputs())
        readers_[input.node->id()].push_back({node, input.port});
      if (node->is_control_trigger()) continue;
      waits = uint32_t(node->inputs().size());
      if (node->is_merge()) {
        waits = 1;
        continue;
      }
      for (const Node* control : node->control_inputs())
        readers_[control->id()].push_back({node, kAnyPort});
      waits += uint32_t(node->control_inputs().size());
    }
    for (const Node* node : graph.nodes())
      if (waits_[node->id()] == 0) reach(*node, open);
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      for (const Reader& reader : readers_[node->id()])
        if (reader.port == kAnyPort ||
            is_live({const_cast<Node*>(node), reader.port}))
          arrive(*reader.node, open);
    }
  }

  bool is_live(const Node& node) const { return live_.contains(node); }
  bool is_live(const Endpoint& output) const {
    if (!is_live(*output.node)) return false;
    const std::optional<bool> taken = known_predicate(*output.node);
    return !taken || output.port == (*taken ? 1 : 0);
  }
  size_t count() const { return live_.size(); }

  // For a Switch with a constant predicate.
  static std::optional<bool> known_predicate(const Node& node) {
    if (!node.is_switch() || node.op() != "Switch" || reads_reference(node))
      return {};
    Endpoint source = node.inputs()[1];
    if (source.node->is_loop_cond()) source = source.node->inputs()[0];
    const Tensor* value = known_constant(source);
    if (value == nullptr || value->dtype() != DataType::kBool ||
        !value->is_scalar())
      return {};
    return value->scalar_value<bool>();
  }

 private:
  static constexpr int kAnyPort = -1;
  struct Reader {
    const Node* node = nullptr;
    int port = kAnyPort;
  };

  void arrive(const Node& node, std::vector<const Node*>& open) {
    uint32_t& waits = waits_[node.id()];
    if (waits > 0 && --waits == 0) reach(node, open);
  }
  void reach(const Node& node, std::vector<const Node*>& open) {
    if (live_.insert(node)) open.push_back(&node);
  }

  std::vector<std::vector<Reader>> readers_;  // by node id
  std::vector<uint32_t> waits_;
  NodeSet live_;
};

class DeadBranches {
 public:
  explicit DeadBranches(Program& program)
      : program_(program), graph_(program.graph) {}

  Result<bool> run() {
    bool any = false;
    for (const Node* node : graph_.nodes())
      any = any || MayBeLive::known_predicate(*node).has_value();
    if (!any) {
      sweep(program_);
      return false;
    }
    const MayBeLive live(graph_);
    TAGFLOW_RETURN_IF_ERROR(narrow_merges(live));
    keep_effects(live);
    sweep(program_);
    TAGFLOW_RETURN_IF_ERROR(open_switches());
    sweep(program_);
    return changed_;
  }

 private:
  Status narrow_merges(const MayBeLive& live) {
    count_readers();
    const std::vector<Node*> nodes(graph_.nodes().begin(),
                                   graph_.nodes().end());
    Detour detour(program_);
    for (Node* node : nodes) {
      if (!node->is_merge() || node->op() != "Merge" || !live.is_live(*node) ||
          !node->control_inputs().empty() || reads_reference(*node))
        continue;
      std::vector<Endpoint> inputs;
      int index = 0;
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        if (!live.is_live(node->inputs()[i])) continue;
        inputs.push_back(node->inputs()[i]);
        index = int(i);
      }
      if (inputs.size() == node->inputs().size()) continue;
      if (inputs.size() == 1) {
        TAGFLOW_RETURN_IF_ERROR(make_identity(node, inputs[0], index, detour));
      } else if (!is_read({node, 1})) {
        TAGFLOW_RETURN_IF_ERROR(detour
                                    .replace(node, "Merge", inputs,
                                             {{"T", node->output_dtypes()[0]},
                                              {"N", int64_t(inputs.size())}},
                                             {})
                                    .status());
        changed_ = true;
      }
    }
    return detour.apply();
  }

  // In the first iteration a loop's Merge has no input from the back edge: if
  // its other inputs are dead, its output is dead; an Identity would differ.
  Status make_identity(Node* merge, const Endpoint& source, int index,
                       Detour& detour) {
    if (source.node->is_next_iteration()) return {};
    changed_ = true;
    TAGFLOW_ASSIGN(Node* const identity,
                   detour.replace(merge, "Identity", {&source, 1},
                                  {{"T", merge->output_dtypes()[0]}}, {}));
    if (!is_read({merge, 1})) return {};
    const Tensor value = Tensor::scalar(int32_t(index));
    TAGFLOW_ASSIGN(
        Node * number,
        add_for(graph_, *merge, name_after(graph_, *merge, "/index"), "Const",
                {}, {{"value", value}, {"dtype", DataType::kInt32}},
                {&identity, 1}));
    detour.lead({merge, 1}, {number, 0});
    return {};
  }

  // A stateful node that is not certainly dead still runs, even if no other
  // node needs it any more.
  void keep_effects(const MayBeLive& live) {
    const NodeSet needed =
        prune(graph_, program_.fetches, program_.targets, {});
    for (Node* node : graph_.nodes())
      if (node->op_def().is_stateful && !needed.contains(*node) &&
          live.is_live(*node))
        program_.targets.push_back(node);
  }

  // Switches with one output left become Identities.
  Status open_switches() {
    count_readers();
    Detour detour(program_);
    const std::vector<Node*> nodes(graph_.nodes().begin(),
                                   graph_.nodes().end());
    for (Node* node : nodes) {
      const std::optional<bool> taken = MayBeLive::known_predicate(*node);
      if (!taken || is_read({node, *taken ? 0 : 1})) continue;
      NodeList controls(node->control_inputs());
      if (!add_dependence(controls, node->inputs()[1])) continue;
      changed_ = true;
      const Endpoint source = node->inputs()[0];
      TAGFLOW_ASSIGN(
          Node * identity,
          detour.replace(node, "Identity", {&source, 1},
                         {{"T", node->output_dtypes()[0]}}, controls));
      detour.lead({node, *taken ? 1 : 0}, {identity, 0});
    }
    return detour.apply();
  }

  void count_readers() {
    read_.clear();
    for (const Node* node : graph_.nodes())
      for (const Endpoint& input : node->inputs())
        if (input.port < 2) read_[input] = true;
    for (const Endpoint& fetch : program_.fetches) read_[fetch] = true;
  }
  bool is_read(const Endpoint& output) const { return read_.contains(output); }

  Program& program_;
  Graph& graph_;
  std::unordered_map<Endpoint, bool, EndpointHash> read_;
  bool changed_ = false;
};

}  // namespace

Result<bool> remove_dead_branches(Program& program, const PassContext&) {
  return DeadBranches(program).run();
}

}  // namespace tagflow::graph
