// Groups of element-wise ops.
//
// Note [What is a group]
// Trees of element-wise ops (Note [What is fused]) on floating tensors of one
// shape that feed each other, or see columns of one tensor, become one node
// `_FusedElementwise`, whoever else reads what is in between: those results are
// its outputs, too. So the gates of a recurrent cell, of which a gradient needs
// each, are one node, and so is what their gradients are made of. Where nothing
// but a ConcatV2 of columns reads some results, the node writes them where they
// belong, and the ConcatV2 is left out. The node waits for all that some op of
// it waits for, and all outputs are as dead as any input. So all ops of a group
// are live under the same conditions (Note [Liveness]), and none of them needs
// what is made of another's output outside of the group. Nor can what it waits
// for wait for an output by ways that the graph does not show, as a queue or
// another device is. Nodes are looked at in an order in which what may be in a
// group comes as late as it can, and then all of it that can: so as much as
// possible is there when a group is computed.
#include <algorithm>
#include <unordered_map>

#include "graph/frames.h"
#include "graph/known_value.h"
#include "graph/passes/passes.h"
#include "graph/passes/readers.h"
#include "graph/passes/rewriting.h"
#include "graph/placement/whole_loops.h"
#include "graph/prune.h"
#include "graph/topology.h"

namespace tagflow::graph {
namespace {

using Strings = std::vector<std::string>;

constexpr int64_t kLeastOfGroup = 8;               // elements
constexpr size_t kMaxLines = 48, kMaxInputs = 48;  // a kernel takes 64

// A value, or columns of it, as an op sees it.
struct Operand {
  Endpoint value;
  int64_t first = 0, count = 0;

  bool operator==(const Operand&) const = default;
};

bool is_tree(const Node& node) { return node.op() == "_FusedElementwise"; }

// Whether the node may be part of a group, whatever it reads.
bool is_candidate(const Node& node) {
  if (node.num_outputs() != 1 || !is_floating(node.output_dtypes()[0]))
    return false;
  const bool adds_two = node.op() == "AddN" && node.num_inputs() == 2 &&
                        is_pure(node) && has_one_known_shape(node);
  if (!is_tree(node) && !adds_two && !is_elementwise(node)) return false;
  const PartialShape& shape = node.output_shape(0);
  return shape.has_rank() && shape.rank() > 0 &&
         (!shape.fully_known() || shape.num_elements() >= kLeastOfGroup);
}

std::vector<Operand> operands_of(const Node& node) {
  std::vector<int64_t> columns;
  if (is_tree(node))
    columns = node.attr<std::vector<int64_t>>("columns").value();
  std::vector<Operand> operands;
  for (const Endpoint& input : node.inputs()) {
    const size_t at = 2 * operands.size();
    operands.push_back({input});
    if (columns.empty()) continue;
    operands.back().first = columns[at];
    operands.back().count = columns[at + 1];
  }
  return operands;
}

size_t num_lines(const Node& node) {
  return is_tree(node) ? node.attr<Strings>("program")->size() : 1;
}

// Lines of a program, which are added with the numbers that they have in it.
class ProgramOfGroup {
 public:
  // Must be called for all nodes before the first add().
  void add_inputs(const Node& node, const NodeSet& inside) {
    for (const Operand& operand : operands_of(node))
      if (!inside.contains(*operand.value.node) &&
          std::ranges::find(inputs_, operand) == inputs_.end())
        inputs_.push_back(operand);
  }
  size_t num_inputs() const { return inputs_.size(); }

  void add(const Node& node) {
    std::vector<size_t> numbers;
    for (const Operand& operand : operands_of(node))
      numbers.push_back(number_of(operand));
    if (!is_tree(node)) {
      add_line(node.op() == "AddN" ? "AddV2" : node.op(), numbers);
      names_.push_back(node.name());
    } else {
      const Strings lines = node.attr<Strings>("program").value();
      for (const std::string& line : lines)
        numbers.push_back(add_line(line, numbers));
      const Strings names = node.attr<Strings>("names").value();
      names_.insert(names_.end(), names.begin(), names.end());
    }
    results_.emplace(&node, inputs_.size() + lines_.size() - 1);
  }
  // An output of these values, next to each other.
  void add_output(const std::vector<Node*>& values) {
    for (const Node* value : values) {
      outputs_.push_back(int64_t(results_.at(value)));
      joined_.push_back(num_outputs_);
    }
    ++num_outputs_;
  }

  std::vector<Endpoint> inputs() const {
    std::vector<Endpoint> inputs;
    for (const Operand& operand : inputs_) inputs.push_back(operand.value);
    return inputs;
  }
  AttrMap attrs(DataType dtype) && {
    AttrMap attrs = {{"N", int64_t(inputs_.size())},
                     {"M", num_outputs_},
                     {"T", dtype},
                     {"program", std::move(lines_)},
                     {"joined", num_outputs_ == int64_t(outputs_.size())
                                    ? std::vector<int64_t>()
                                    : std::move(joined_)},
                     {"outputs", std::move(outputs_)},
                     {"names", std::move(names_)}};
    std::vector<int64_t> columns;
    bool has_columns = false;
    for (const Operand& operand : inputs_) {
      columns.insert(columns.end(), {operand.first, operand.count});
      has_columns = has_columns || operand.count != 0;
    }
    if (has_columns) attrs.emplace("columns", std::move(columns));
    return attrs;
  }

 private:
  size_t number_of(const Operand& operand) const {
    const auto result = results_.find(operand.value.node);
    if (result != results_.end()) return result->second;
    return size_t(std::ranges::find(inputs_, operand) - inputs_.begin());
  }

  // An op, with its operands as they count in `numbers`, or all of these.
  size_t add_line(std::string_view line, const std::vector<size_t>& numbers) {
    const size_t op_end = std::min(line.find(' '), line.size());
    std::string made(line.substr(0, op_end));
    if (op_end == line.size()) {
      for (const size_t number : numbers) made += fmt::format(" {}", number);
    }
    for (size_t at = op_end; at < line.size();) {
      const size_t end = std::min(line.find(' ', at + 1), line.size());
      const std::string number(line.substr(at + 1, end - at - 1));
      made += fmt::format(" {}", numbers[std::stoul(number)]);
      at = end;
    }
    lines_.push_back(std::move(made));
    return inputs_.size() + lines_.size() - 1;
  }

  std::vector<Operand> inputs_;
  std::unordered_map<const Node*, size_t> results_;
  Strings lines_, names_;
  std::vector<int64_t> outputs_, joined_;
  int64_t num_outputs_ = 0;
};

class Grouping {
 public:
  Grouping(Program& program, const FrameMap& frames, const MayWait& may_wait)
      : program_(program),
        graph_(program.graph),
        frames_(frames),
        may_wait_(may_wait),
        facts_(find_facts(program.graph, frames)),
        readers_(program),
        detour_(program) {}

  Result<bool> run() {
    place_.resize(graph_.end_id());
    group_of_.resize(graph_.end_id());
    uses_.resize(graph_.end_id());
    for (const Node* node : graph_.nodes()) {
      for (const Endpoint& input : node->inputs()) ++uses_[input.node->id()];
      for (const Node* control : node->control_inputs())
        awaited_.insert(*control);
    }
    for (const Endpoint& fetch : program_.fetches)
      if (fetch.node != nullptr) ++uses_[fetch.node->id()];
    for (const Node* target : program_.targets) awaited_.insert(*target);
    const std::vector<Node*> order = candidates_last();
    for (size_t i = 0; i < order.size(); ++i) place_[order[i]->id()] = i;
    find_hidden_ways(order);
    for (Node* node : order)
      if (may_be_grouped(*node)) add(node);
    for (const Group& group : groups_)
      if (group.nodes.size() > 1) TAGFLOW_RETURN_IF_ERROR(fuse(group));
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  bool may_be_grouped(const Node& node) const {
    return is_candidate(node) && !awaited_.contains(node) &&
           uses_[node.id()] > 0 &&
           facts_.whole_loops[size_t(frames_.of(node))].empty();
  }

  // What comes after something that may wait for what no edge shows, and what
  // comes before something that may be waited for.
  void find_hidden_ways(const std::vector<Node*>& order) {
    std::vector<Node*> ends;
    bool has_begins = false;
    for (Node* node : order) {
      if (may_be_waited_for(*node)) ends.push_back(node);
      if (!waits(*node)) continue;
      after_.insert(*node);
      has_begins = true;
    }
    if (!has_begins) return;
    before_ = prune(graph_, {}, ends, {});
    const auto is_after = [&](const Node* node) {
      return after_.contains(*node);
    };
    for (bool is_new = true; is_new;) {
      is_new = false;
      for (const Node* node : order)
        if (!after_.contains(*node) &&
            (std::ranges::any_of(node->inputs(), is_after, &Endpoint::node) ||
             std::ranges::any_of(node->control_inputs(), is_after))) {
          after_.insert(*node);
          is_new = true;
        }
    }
  }

  bool waits(const Node& node) const {
    return node.op() == "_Recv" || is_call(node) || may_wait_(node);
  }
  // Whatever is in its body.
  static bool is_call(const Node& node) {
    return node.op().starts_with("_Call");
  }
  // Nothing waits for a variable to change.
  bool may_be_waited_for(const Node& node) const {
    if (node.op() == "_Send" || is_call(node) || may_wait_(node)) return true;
    const OpDef& def = node.op_def();
    return def.is_stateful &&
           (def.inputs.empty() ||
            (def.inputs[0].name != "resource" && def.inputs[0].name != "ref" &&
             def.inputs[0].name != "var"));
  }

  // A topological order, back edges apart.
  std::vector<Node*> candidates_last() const {
    std::vector<uint32_t> waits(graph_.end_id());
    std::vector<std::vector<Node*>> readers(graph_.end_id());
    std::vector<Node*> order, others, candidates;
    const auto enqueue = [&](Node* node) {
      (may_be_grouped(*node) ? candidates : others).push_back(node);
    };
    for (Node* node : graph_.nodes()) {
      for (size_t i = 0; i < node->inputs().size(); ++i)
        if (!is_back_edge(*node, i)) {
          readers[node->inputs()[i].node->id()].push_back(node);
          ++waits[node->id()];
        }
      for (const Node* control : node->control_inputs()) {
        readers[control->id()].push_back(node);
        ++waits[node->id()];
      }
      if (waits[node->id()] == 0) enqueue(node);
    }
    const auto take_all = [&](std::vector<Node*>& from) {
      while (!from.empty()) {
        Node* const node = from.back();
        from.pop_back();
        order.push_back(node);
        for (Node* reader : readers[node->id()])
          if (--waits[reader->id()] == 0) enqueue(reader);
      }
    };
    while (!others.empty() || !candidates.empty()) {
      take_all(others);
      take_all(candidates);
    }
    return order;
  }

  struct Group {
    std::vector<Node*> nodes;  // in topological order
    size_t lines = 0, inputs = 0;
    bool is_after = false, is_before = false;  // some node
  };

  // To the first group that it may join, or to one of its own.
  void add(Node* node) {
    const std::vector<Operand> operands = operands_of(*node);
    size_t number = 0;  // of the group, from 1 on
    for (const Operand& operand : operands) {
      size_t found = group_of_[operand.value.node->id()];
      if (const auto seen = columns_.find(operand.value);
          found == 0 && operand.count != 0 && seen != columns_.end())
        found = seen->second;
      if (found == 0 || !may_join(*node, found)) continue;
      number = found;
      break;
    }
    if (number == 0) {
      groups_.emplace_back();
      number = groups_.size();
    }
    Group& group = groups_[number - 1];
    group.nodes.push_back(node);
    group.lines += num_lines(*node);
    group.is_after |= after_.contains(*node);
    group.is_before |= before_.contains(*node);
    group.inputs += operands.size();
    group_of_[node->id()] = number;
    for (const Operand& operand : operands)
      if (operand.count != 0) columns_[operand.value] = number;
  }

  bool may_join(const Node& node, size_t number) {
    const Group& group = groups_[number - 1];
    const Node& like = *group.nodes.front();
    return group.lines + num_lines(node) <= kMaxLines &&
           group.inputs + size_t(node.num_inputs()) <= kMaxInputs &&
           node.output_dtypes()[0] == like.output_dtypes()[0] &&
           node.output_shape(0) == like.output_shape(0) &&
           frames_.of(node) == frames_.of(like) &&
           has_same_constraints(node, like) &&
           facts_.liveness->of(node) == facts_.liveness->of(like) &&
           !((group.is_after || after_.contains(node)) &&
             (group.is_before || before_.contains(node))) &&
           can_wait_with(node, number);
  }

  // Whether all that the node reads beside the group is there when the group is
  // computed: at the place of its first node. So there is an order for all
  // groups, and no way from one through others back to it.
  bool can_wait_with(const Node& node, size_t number) const {
    const size_t place = place_of_group(number);
    const auto is_before = [&](const Node& source) {
      const size_t group = group_of_[source.id()];
      return group == number ||
             (group == 0 ? place_[source.id()] : place_of_group(group)) < place;
    };
    return std::ranges::all_of(
               node.inputs(),
               [&](const Endpoint& input) { return is_before(*input.node); }) &&
           std::ranges::all_of(node.control_inputs(), [&](const Node* control) {
             return is_before(*control);
           });
  }
  size_t place_of_group(size_t number) const {
    return place_[groups_[number - 1].nodes.front()->id()];
  }

  Status fuse(const Group& group) {
    NodeSet inside;
    for (const Node* node : group.nodes) inside.insert(*node);
    std::unordered_map<const Node*, uint32_t> uses;  // within the group
    ProgramOfGroup program;
    NodeList controls;
    for (const Node* node : group.nodes) {
      program.add_inputs(*node, inside);
      controls.add(node->control_inputs());
      for (const Endpoint& input : node->inputs()) ++uses[input.node];
    }
    std::vector<Node*> outputs, joins;
    for (Node* node : group.nodes) program.add(*node);
    for (Node* node : group.nodes) {
      if (uses[node] == uses_[node->id()]) continue;
      Node* const join = find_join(*node, inside);
      if (join == nullptr) {
        program.add_output({node});
        outputs.push_back(node);
      } else if (std::ranges::find(outputs, join) == outputs.end()) {
        program.add_output(values_of(*join));
        outputs.push_back(join);
        add_dependence(controls, join->inputs().back());
      }
    }
    const Node& last = *group.nodes.back();
    TAGFLOW_ASSIGN(
        Node * made,
        add_for(graph_, last, name_after(graph_, last), "_FusedElementwise",
                program.inputs(),
                std::move(program).attrs(last.output_dtypes()[0]), controls));
    for (size_t i = 0; i < outputs.size(); ++i) {
      detour_.lead({outputs[i], 0}, {made, int(i)});
      graph_.set_output_shape(made, int(i), outputs[i]->output_shape(0));
    }
    return {};
  }

  // The ConcatV2 that alone reads the node, and others of the group, each once,
  // by columns; null where there is none.
  Node* find_join(const Node& node, const NodeSet& inside) const {
    const auto reader = readers_.only_reader(node);
    if (!reader || !joins_columns(*reader->node, node)) return nullptr;
    for (const Node* value : values_of(*reader->node)) {
      const auto other = readers_.only_reader(*value);
      if (!inside.contains(*value) || !other || other->node != reader->node)
        return nullptr;
    }
    return reader->node;
  }

  static std::vector<Node*> values_of(const Node& join) {
    std::vector<Node*> values;
    for (const Endpoint& input : join.inputs()) values.push_back(input.node);
    values.pop_back();  // the axis
    return values;
  }

  // Whether it joins columns of such shapes as the node's.
  static bool joins_columns(const Node& join, const Node& node) {
    if (join.op() != "ConcatV2" || !is_pure(join) ||
        !join.control_inputs().empty() || !has_same_constraints(join, node))
      return false;
    const Endpoint& axis = join.inputs().back();
    const Tensor* value = known_constant(axis);
    const PartialShape& shape = node.output_shape(0);
    NodeList controls;
    if (value == nullptr || value->num_elements() != 1 ||
        !add_dependence(controls, axis) || shape.dim(shape.rank() - 1) < 0)
      return false;
    const int64_t at = value->dtype() == DataType::kInt32
                           ? value->data<int32_t>()[0]
                           : value->data<int64_t>()[0];
    return at == -1 || at == shape.rank() - 1;
  }

  Program& program_;
  Graph& graph_;
  const FrameMap& frames_;
  const MayWait& may_wait_;
  const GraphFacts facts_;
  const Readers readers_;
  Detour detour_;
  std::vector<size_t> place_;     // by node id, in topological order
  std::vector<size_t> group_of_;  // by node id, from 1 on; 0: in none
  std::vector<uint32_t> uses_;    // by node id, as an input or a fetch
  NodeSet awaited_;               // needed otherwise
  NodeSet after_, before_;        // as find_hidden_ways() says
  std::vector<Group> groups_;
  // Of which columns are seen: the last group that does.
  std::unordered_map<Endpoint, size_t, EndpointHash> columns_;
};

}  // namespace

Result<bool> group_elementwise(Program& program, const MayWait& may_wait) {
  if (std::ranges::none_of(program.graph.nodes(), [](const Node* node) {
        return is_candidate(*node);
      }))
    return false;
  TAGFLOW_ASSIGN(const FrameMap frames, FrameMap::build(program.graph));
  return Grouping(program, frames, may_wait).run();
}

}  // namespace tagflow::graph
