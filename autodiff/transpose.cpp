#include "autodiff/transpose.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/differentiate.h"
#include "autodiff/paths.h"
#include "autodiff/region.h"
#include "autodiff/rule.h"
#include "autodiff/stand_in.h"
#include "autodiff/sum.h"
#include "graph/builder/ops_array.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// The transposition of one node's rule.
class Transposition {
 public:
  Transposition(Region& region, const Node& node)
      : region_(region),
        node_(node),
        scope_(region.scope().with_device(node.device())),
        begin_(graph().end_id()) {}

  std::vector<Output> run(const std::vector<Output>& tangents,
                          const std::vector<bool>& wanted) {
    std::vector<Output> results(wanted.size());
    const auto found = rule_of(node_);
    if (!found.ok()) {
      scope_.fail(found.status());
      return results;
    }
    if (*found == nullptr || (*found)->rule == nullptr) return results;
    const auto outputs = stand_in_outputs(node_);
    if (!outputs.ok()) {
      scope_.fail(outputs.status());
      return results;
    }
    place_cotangents(wanted);
    RuleContext reverse(region_, node_, node_.name() + "_tangent", cotangents_,
                        are_valid(tangents), *outputs);
    (*found)->rule(reverse);
    if (!scope_.ok()) return results;
    seed(std::move(reverse).take_results(), tangents);
    if (!walk()) walk_over_control_flow();
    for (size_t port = 0; port < results.size(); ++port)
      if (cotangents_[port].valid())
        results[port] = total(cotangents_[port].values.endpoint()).values;
    read_shapes_elsewhere();
    return results;
  }

 private:
  graph::Graph& graph() { return region_.analysis().graph(); }

  static std::vector<bool> are_valid(const std::vector<Output>& tangents) {
    std::vector<bool> valid;
    for (const Output& tangent : tangents) valid.push_back(tangent.valid());
    return valid;
  }

  // The cotangents: placeholders for the gradients of the outputs.
  void place_cotangents(const std::vector<bool>& wanted) {
    for (size_t port = 0; port < wanted.size(); ++port) {
      const Endpoint output{const_cast<Node*>(&node_), int(port)};
      Gradient& v = cotangents_.emplace_back();
      if (!wanted[port]) continue;
      v.values = region_.analysis().is_container(output)
                     ? Output(scope_.op("ZeroVariant", {}))
                     : ops::zeros_like(scope_, region_.value(output));
      if (v.valid()) depends_.insert(v.values.endpoint());
    }
  }

  // The gradients of <results of the rule, tangents> by these results.
  void seed(const std::vector<Gradient>& made,
            const std::vector<Output>& tangents) {
    for (size_t i = 0; i < made.size(); ++i) {
      if (!made[i].valid() || !tangents[i].valid()) continue;
      const Output seed = made[i].is_sparse() ? ops::gather(scope_, tangents[i],
                                                            made[i].indices)
                                              : tangents[i];
      partials_[made[i].values.endpoint()].push_back({seed});
    }
  }

  // Walks back over the nodes that the rule has added, which are in order.
  // Returns false, without effect, if some of them have no rules.
  bool walk() {
    std::vector<Node*> on_the_way;
    const size_t end = graph().end_id();
    for (size_t id = begin_; id < end; ++id) {
      Node* node = graph().node(graph::NodeId(id));
      if (node == nullptr || !find_dependence(*node)) continue;
      if (node->is_switch() || node->is_merge() || node->is_enter() ||
          node->is_exit() || !node->op_def().is_registered ||
          node->op().ends_with("PartitionedCall"))
        return false;
      on_the_way.push_back(node);
    }
    for (size_t i = on_the_way.size(); i-- > 0 && scope_.ok();)
      visit(*on_the_way[i]);
    return true;
  }

  bool find_dependence(Node& node) {
    const auto entry = rule_of(node);
    if (entry.ok() && *entry != nullptr && (*entry)->rule == nullptr)
      return false;
    if (std::ranges::none_of(node.inputs(), [&](const Endpoint& input) {
          return depends_.contains(input);
        }))
      return false;
    for (int port = 0; port < node.num_outputs(); ++port)
      if (has_gradient(node.output_dtypes()[size_t(port)]))
        depends_.insert({&node, port});
    return true;
  }

  void visit(Node& node) {
    std::vector<Gradient> grads;
    for (int port = 0; port < node.num_outputs(); ++port)
      grads.push_back(total({&node, port}));
    if (std::ranges::none_of(grads, &Gradient::valid)) return;
    const auto entry = rule_of(node);
    if (!entry.ok()) return scope_.fail(entry.status());
    if (*entry == nullptr)
      return scope_.fail(error(
          Code::kUnimplemented,
          "[gradients] the rule of op \"{}\" of node \"{}\" uses op \"{}\", "
          "which has no rule itself: so there is no forward mode of it",
          node_.op(), node_.name(), node.op()));
    std::vector<bool> wanted;
    for (const Endpoint& input : node.inputs())
      wanted.push_back(depends_.contains(input));
    RuleContext context(region_, node, node_.name() + "_tangent",
                        std::move(grads), std::move(wanted));
    (*entry)->rule(context);
    const std::vector<Gradient> results = std::move(context).take_results();
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].valid()) partials_[node.inputs()[i]].push_back(results[i]);
  }

  // A rare rule with a call or a conditional is differentiated like any graph.
  void walk_over_control_flow() {
    Differentiand what;
    std::vector<Gradient> seeds;
    for (const auto& [y, partials] : partials_) {
      what.ys.push_back(y);
      seeds.push_back(sum(y, partials));
    }
    for (const Gradient& v : cotangents_)
      if (v.valid()) what.xs.push_back(v.values.endpoint());
    what.grad_of = [&](size_t i) { return seeds[i]; };
    what.has_own_grads = true;
    const auto grads = differentiate(scope_, what);
    if (!grads.ok()) return scope_.fail(grads.status());
    partials_.clear();
    for (size_t i = 0; i < what.xs.size(); ++i)
      if ((*grads)[i].valid()) partials_[what.xs[i]] = {(*grads)[i]};
  }

  Gradient total(const Endpoint& tensor) {
    const auto partials = partials_.find(tensor);
    if (partials == partials_.end() || !scope_.ok()) return {};
    return sum(tensor, partials->second);
  }

  Gradient sum(const Endpoint& tensor, const std::vector<Gradient>& partials) {
    std::vector<Output> all;
    for (const Gradient& partial : partials)
      all.push_back(region_.dense(scope_, tensor, partial));
    return {sum_of(scope_, std::move(all))};
  }

  // Nothing must depend on the cotangents.
  void read_shapes_elsewhere() {
    constexpr std::string_view kOfShapes[] = {"Shape", "ShapeN",    "Size",
                                              "Rank",  "ZerosLike", "OnesLike"};
    for (size_t id = begin_; id < graph().end_id() && scope_.ok(); ++id) {
      Node* node = graph().node(graph::NodeId(id));
      if (node == nullptr ||
          std::ranges::find(kOfShapes, node->op()) == std::end(kOfShapes))
        continue;
      for (size_t i = 0; i < node->inputs().size(); ++i)
        for (size_t port = 0; port < cotangents_.size(); ++port) {
          const Output& v = cotangents_[port].values;
          if (!v.valid() || node->inputs()[i] != v.endpoint() ||
              v.node()->op() != "ZerosLike" || node == v.node())
            continue;
          const Status set =
              graph().set_input(node, int(i), v.node()->inputs()[0]);
          if (!set.ok()) scope_.fail(set);
        }
    }
  }

  Region& region_;
  const Node& node_;
  const Scope scope_;
  const size_t begin_;
  std::vector<Gradient> cotangents_;  // by port
  // The tensors that depend on them in a way that has a derivative.
  Paths::Set depends_;
  std::unordered_map<Endpoint, std::vector<Gradient>, graph::EndpointHash>
      partials_;
};

}  // namespace

std::vector<Output> transposed_tangents(Region& region, const Node& node,
                                        const std::vector<Output>& tangents,
                                        const std::vector<bool>& wanted) {
  return Transposition(region, node).run(tangents, wanted);
}

}  // namespace tagflow::autodiff
