// Common subexpressions.
//
// Nodes of the same op, attributes, inputs, control inputs and device are one:
// with the same inputs they are of the same frame, and dead together.
#include <algorithm>
#include <bit>
#include <boost/container/small_vector.hpp>
#include <deque>
#include <unordered_map>

#include "graph/known_value.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriting.h"
#include "graph/topology.h"

namespace tagflow::graph {
namespace {

// How much of a tensor's elements its hash looks at, unless another tensor has
// the same there.
constexpr size_t kHashedBytes = 512;

void mix(size_t& hash, size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
}

void mix(size_t& hash, std::string_view text) {
  mix(hash, std::hash<std::string_view>()(text));
}

// Of the type, the number of elements, and the first `most` bytes of these.
size_t hash_of(const Tensor& tensor, size_t most) {
  size_t hash = size_t(tensor.dtype());
  mix(hash, size_t(tensor.num_elements()));
  if (tensor.num_elements() == 0) return hash;
  if (is_plain(tensor.dtype()))
    mix(hash, {static_cast<const char*>(tensor.raw()),
               std::min(tensor.bytes(), most)});
  if (tensor.dtype() != DataType::kString) return hash;
  for (const std::string& text : tensor.flat<std::string>()) {
    if (most == 0) break;
    mix(hash, text.size());
    mix(hash, std::string_view(text).substr(0, most));
    most -= std::min(most, text.size() + 1);
  }
  return hash;
}

// Hashes values of attributes: what is equal has the same hash.
class AttrHash {
 public:
  // Is told of all tensors beforehand.
  void expect(const Tensor& tensor) {
    if (is_long(tensor)) ++alike_[hash_of(tensor, kHashedBytes)];
  }
  void mix_in(size_t& hash, const AttrMap& attrs) const {
    for (const auto& [name, value] : attrs) {
      // The others are the same for all nodes of an op.
      if (name.starts_with('_')) add(hash, name);
      std::visit([&](const auto& v) { add(hash, v); }, value.value());
    }
  }

 private:
  static bool is_long(const Tensor& tensor) {
    return tensor.bytes() > kHashedBytes || tensor.dtype() == DataType::kString;
  }

  void add(size_t& hash, std::monostate) const { mix(hash, size_t(0)); }
  // The same for lists of all types, since empty ones are equal.
  void add(size_t& hash, const EmptyList&) const { mix(hash, size_t(0)); }
  void add(size_t& hash, const std::string& text) const {
    mix(hash, std::string_view(text));
  }
  void add(size_t& hash, int64_t value) const { mix(hash, size_t(value)); }
  void add(size_t& hash, bool value) const { mix(hash, size_t(value)); }
  void add(size_t& hash, DataType type) const { mix(hash, size_t(type)); }
  void add(size_t& hash, float value) const {
    mix(hash, size_t(std::bit_cast<uint32_t>(value)));
  }
  void add(size_t& hash, const PartialShape& shape) const {
    mix(hash, size_t(shape.has_rank() ? shape.rank() : -1));
    if (!shape.has_rank()) return;
    for (const int64_t dim : shape.dims()) mix(hash, size_t(dim));
  }
  void add(size_t& hash, const Tensor& tensor) const {
    size_t own = hash_of(tensor, kHashedBytes);
    if (is_long(tensor)) {
      const auto alike = alike_.find(own);
      if (alike != alike_.end() && alike->second > 1)
        own = hash_of(tensor, ~size_t(0));
    }
    mix(hash, own);
  }
  void add(size_t& hash, const SharedTensor& tensor) const {
    add(hash, *tensor);
  }
  // Not by its attributes, which may nest.
  void add(size_t& hash, const FunctionRef& function) const {
    add(hash, function.name);
  }
  void add(size_t& hash, const AttrPlaceholder& placeholder) const {
    add(hash, placeholder.name);
  }
  template <class T>
  void add(size_t& hash, const std::vector<T>& list) const {
    mix(hash, list.size());
    for (const T& element : list) add(hash, element);
  }

  std::unordered_map<size_t, int> alike_;  // long tensors, by `hash_of`
};

// What a node computes, told by its sources.
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
      if (node->is_const()) attr_hash_.expect(*known_constant({node, 0}));
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
      made.controls.push_back(ends.empty() ? control : ends.front());
    }
    std::ranges::sort(made.controls, {}, &Node::id);
    made.controls.erase(std::unique(made.controls.begin(), made.controls.end()),
                        made.controls.end());
    mix(made.hash, std::bit_cast<size_t>(&node.op_def()));
    for (const Endpoint& input : made.inputs)
      mix(made.hash, EndpointHash()(input));
    for (const Node* control : made.controls) mix(made.hash, control->id());
    mix(made.hash, std::string_view(node.device()));
    attr_hash_.mix_in(made.hash, node.attrs());
    return made;
  }

  Program& program_;
  Detour detour_;
  std::deque<Expression> known_;
  HashIndex index_;  // of `known_`
  AttrHash attr_hash_;
};

}  // namespace

Result<bool> share_subexpressions(Program& program, const Evaluator*) {
  return Sharing(program).run();
}

}  // namespace tagflow::graph
