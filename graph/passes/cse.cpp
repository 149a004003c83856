// Common subexpressions.
//
// Nodes of the same op, attributes, inputs, control inputs and device are one:
// with the same inputs they are of the same frame, and dead together.
#include <algorithm>
#include <bit>
#include <boost/container/small_vector.hpp>
#include <cstring>
#include <deque>

#include "graph/passes/passes.h"
#include "graph/passes/rewriting.h"
#include "graph/topology.h"

namespace tagflow::graph {
namespace {

// How much of a tensor its hash looks at.
constexpr size_t kHashedBytes = 512;

void mix(size_t& hash, size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
}

void mix(size_t& hash, std::string_view text) {
  mix(hash, std::hash<std::string_view>()(text));
}

void mix(size_t& hash, const Tensor& tensor) {
  mix(hash, size_t(tensor.dtype()));
  mix(hash, size_t(tensor.num_elements()));
  if (!is_plain(tensor.dtype()) || tensor.num_elements() == 0) return;
  mix(hash, {static_cast<const char*>(tensor.raw()),
             std::min(tensor.bytes(), kHashedBytes)});
}

void mix(size_t& hash, const AttrValue& value) {
  mix(hash, value.value().index());
  if (const auto* tensor = value.get_if<Tensor>()) {
    mix(hash, *tensor);
  } else if (const auto* type = value.get_if<DataType>()) {
    mix(hash, size_t(*type));
  } else if (const auto* integer = value.get_if<int64_t>()) {
    mix(hash, size_t(*integer));
  } else if (const auto* flag = value.get_if<bool>()) {
    mix(hash, size_t(*flag));
  } else if (const auto* text = value.get_if<std::string>()) {
    mix(hash, std::string_view(*text));
  }
}

// Floats by their bits: -0.0 and 0.0 are two.
bool same_bits(const AttrValue& a, const AttrValue& b) {
  const float* x = a.get_if<float>();
  const float* y = b.get_if<float>();
  if (x != nullptr && y != nullptr)
    return std::bit_cast<uint32_t>(*x) == std::bit_cast<uint32_t>(*y);
  const auto* xs = a.get_if<std::vector<float>>();
  const auto* ys = b.get_if<std::vector<float>>();
  if (xs != nullptr && ys != nullptr)
    return xs->size() == ys->size() &&
           (xs->empty() ||
            std::memcmp(xs->data(), ys->data(), xs->size() * 4) == 0);
  return a == b;
}

// What a node computes, told by its sources.
struct Expression {
  Node* node = nullptr;
  boost::container::small_vector<Endpoint, 4> inputs;
  NodeList controls;
  size_t hash = 0;

  bool operator==(const Expression& other) const {
    return hash == other.hash && &node->op_def() == &other.node->op_def() &&
           inputs == other.inputs && controls == other.controls &&
           node->device() == other.node->device() &&
           std::ranges::equal(node->attrs(), other.node->attrs(),
                              [](const auto& a, const auto& b) {
                                return a.first == b.first &&
                                       same_bits(a.second, b.second);
                              });
  }
};

class Sharing {
 public:
  explicit Sharing(Program& program) : program_(program), detour_(program) {}

  Result<bool> run() {
    TAGFLOW_ASSIGN(const auto order, topological_order(program_.graph));
    index_ = HashIndex(order.size());
    std::vector<Node*> gone;
    for (Node* node : order) {
      if (!is_pure(*node)) continue;
      Node* same = find_or_keep(expression(node));
      if (same == nullptr) continue;
      for (int i = 0; i < node->num_outputs(); ++i)
        detour_.lead({node, i}, {same, i});
      detour_.lead_control(node, {same});
      gone.push_back(node);
    }
    if (gone.empty()) return false;
    TAGFLOW_RETURN_IF_ERROR(detour_.apply());
    program_.graph.remove(gone);
    return true;
  }

 private:
  // With the inputs of a commutative op in a fixed order. But which of +0 and
  // -0, or of two NaNs, is the larger one depends on it.
  static bool ignores_order(const Node& node) {
    return node.op_def().is_commutative && node.num_inputs() == 2 &&
           node.op() != "Maximum" && node.op() != "Minimum";
  }

  // The node that was known to compute it; null where it is new.
  Node* find_or_keep(Expression made) {
    // The low bits of the hash are not its best ones.
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
    const auto hash = uint32_t((made.hash * kGolden) >> 32);
    const uint32_t number = index_.find(
        hash, [&](uint32_t known) { return known_[known] == made; });
    if (number != HashIndex::kNone) return known_[number].node;
    index_.insert(hash, uint32_t(known_.size()));
    known_.push_back(std::move(made));
    return nullptr;
  }

  Expression expression(Node* of) const {
    const Node& node = *of;
    Expression made;
    made.node = of;
    for (const Endpoint& input : node.inputs())
      made.inputs.push_back(detour_.end(input));
    if (ignores_order(node))
      std::ranges::sort(made.inputs, {}, [](const Endpoint& input) {
        return std::pair(input.node->id(), input.port);
      });
    for (Node* control : node.control_inputs()) {
      const auto ends = detour_.control_ends(*control);
      add_once(made.controls, ends.empty() ? control : ends.front());
    }
    std::ranges::sort(made.controls, {}, &Node::id);
    mix(made.hash, std::bit_cast<size_t>(&node.op_def()));
    for (const Endpoint& input : made.inputs)
      mix(made.hash, EndpointHash()(input));
    for (const Node* control : made.controls) mix(made.hash, control->id());
    for (const auto& [name, value] : node.attrs()) mix(made.hash, value);
    return made;
  }

  Program& program_;
  Detour detour_;
  std::deque<Expression> known_;
  HashIndex index_;  // of `known_`
};

}  // namespace

Result<bool> share_subexpressions(Program& program, const Evaluator*) {
  return Sharing(program).run();
}

}  // namespace tagflow::graph
