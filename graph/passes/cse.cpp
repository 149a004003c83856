// Common subexpressions.
//
// Merges nodes with the same op, attributes, inputs, control inputs and device:
// since their inputs are the same, they are in the same frame, and dead
// together. New containers stay apart, since all that begins as one container
// has to be on one device.
#include <algorithm>
#include <bit>
#include <boost/container/small_vector.hpp>
#include <deque>
#include <unordered_map>

#include "graph/analysis/topology.h"
#include "graph/attr_hash.h"
#include "graph/known_value.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

// A container that begins with constants, or with nothing.
bool makes_container(const Node& node) {
  return !node.is_const() && node.num_outputs() == 1 &&
         node.output_dtypes()[0] == DataType::kVariant &&
         std::ranges::all_of(node.inputs(), [](const Endpoint& input) {
           return input.node->is_const();
         });
}

// Large tensors whose hashes do not include all elements. Those with equal
// beginnings must be hashed completely: otherwise they would be compared
// pairwise.
class LongTensors {
 public:
  // Must be called for all of them.
  void expect(const Tensor& tensor) {
    if (is_long(tensor)) ++alike_[start_of(tensor)];
  }
  // How many bytes to hash.
  size_t bytes_to_see(const Tensor& tensor) const {
    if (!is_long(tensor)) return AttrHash::kTensorBytes;
    const auto alike = alike_.find(start_of(tensor));
    return alike != alike_.end() && alike->second > 1 ? ~size_t(0)
                                                      : AttrHash::kTensorBytes;
  }

 private:
  static bool is_long(const Tensor& tensor) {
    return tensor.bytes() > AttrHash::kTensorBytes ||
           tensor.dtype() == DataType::kString;
  }
  static size_t start_of(const Tensor& tensor) {
    AttrHash hash;
    hash.add_tensor(tensor);
    return hash.value();
  }

  std::unordered_map<size_t, int> alike_;  // count, by hash of the beginning
};

// The expression that a node computes, given by its inputs.
struct Expression {
  Node* node = nullptr;
  boost::container::small_vector<Endpoint, 4> inputs;
  boost::container::small_vector<Node*, 2> controls;
  size_t hash = 0;

  bool operator==(const Expression& other) const {
    return hash == other.hash && &node->op_def() == &other.node->op_def() &&
           inputs == other.inputs && controls == other.controls &&
           node->device() == other.node->device() &&
           node->attrs() == other.node->attrs();
  }
};

class Sharing {
 public:
  explicit Sharing(Program& program) : program_(program), detour_(program) {}

  Result<bool> run() {
    TAGFLOW_ASSIGN(const auto order, topological_order(program_.graph));
    index_ = HashIndex(order.size());
    for (Node* node : order)
      if (node->is_const()) long_tensors_.expect(*known_constant({node, 0}));
    std::vector<Node*> gone;
    for (Node* node : order) {
      if (!is_pure(*node) || makes_container(*node)) continue;
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
  // Whether a commutative op gives the same bits for its inputs in any order;
  // all NaNs count as equal. A sum of more than two depends on the order, and
  // so does the choice between +0 and -0 in a maximum.
  static bool ignores_order(const Node& node) {
    if (node.num_inputs() != 2) return false;
    const DataType type = node.input_dtypes()[0];
    // It also joins strings, so its definition is not commutative.
    if (node.op() == "Add") return type != DataType::kString;
    if (node.op() == "Maximum" || node.op() == "Minimum")
      return !is_floating(type);
    return node.op_def().is_commutative;
  }

  // An existing node with the same expression; null if it is new.
  Node* find_or_keep(Expression made) {
    // The low bits of the hash are badly distributed.
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
    // Sorts them.
    if (ignores_order(node))
      std::ranges::sort(made.inputs, {}, [](const Endpoint& input) {
        return std::pair(input.node->id(), input.port);
      });
    for (Node* control : node.control_inputs()) {
      const auto ends = detour_.control_ends(*control);
      made.controls.push_back(ends.empty() ? control : ends.front());
    }
    std::ranges::sort(made.controls, {}, &Node::id);
    made.controls.erase(std::unique(made.controls.begin(), made.controls.end()),
                        made.controls.end());
    made.hash = hash_of(made);
    return made;
  }

  size_t hash_of(const Expression& made) const {
    const Node& node = *made.node;
    AttrHash hash;
    hash.add_number(std::bit_cast<size_t>(&node.op_def()));
    for (const Endpoint& input : made.inputs)
      hash.add_number(EndpointHash()(input));
    for (const Node* control : made.controls) hash.add_number(control->id());
    if (!node.device().empty()) hash.add_text(node.device());
    for (const auto& [name, value] : node.attrs()) {
      // The names of other attributes are the same for all nodes of an op.
      if (name.starts_with('_')) hash.add_text(name);
      if (const auto* tensor = value.get_if<Tensor>()) {
        hash.add_tensor(*tensor, long_tensors_.bytes_to_see(*tensor));
      } else {
        hash.add_value(value);
      }
    }
    return hash.value();
  }

  Program& program_;
  Detour detour_;
  std::deque<Expression> known_;
  HashIndex index_;  // of `known_`
  LongTensors long_tensors_;
};

}  // namespace

Result<bool> share_subexpressions(Program& program, const PassContext&) {
  return Sharing(program).run();
}

}  // namespace tagflow::graph
