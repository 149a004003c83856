// Note [What a pass keeps], of every pass that replaces nodes: who waited for
// something waits for it still, by values or by control edges, and what is made
// has the placement of what it replaces.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "graph/analysis/frames.h"
#include "graph/analysis/loop_shapes.h"
#include "graph/builder/builder.h"
#include "tests/graph/hand_made_loops.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

using Strings = std::vector<std::string>;
using Waits = std::vector<std::set<std::string>>;  // one for each fetch

// A program that a pass changes.
struct Case {
  std::string name;
  std::function<Strings(Graph& graph)> build;  // returns the fetches
  std::function<Result<bool>(Program&)> pass;
  // The nodes that are given control inputs, those of one list the same ones.
  // None: each node, where a control input may be.
  std::vector<Strings> gated = {};
  // Whether identities are removed before.
  bool is_cleaned = false;
  // Whether those that wait for one of the nodes may wait for all of them.
  bool waits_together = false;
};

// The Placeholders that something needs, by name.
std::set<std::string> waits_of(const Node* of) {
  std::set<const Node*> seen = {of};
  std::vector<const Node*> open = {of};
  std::set<std::string> names;
  const auto visit = [&](const Node* node) {
    if (node != nullptr && seen.insert(node).second) open.push_back(node);
  };
  while (!open.empty()) {
    const Node& node = *open.back();
    open.pop_back();
    if (node.op() == "Placeholder") names.insert(node.name());
    for (const Endpoint& input : node.inputs()) visit(input.node);
    for (const Node* control : node.control_inputs()) visit(control);
  }
  return names;
}

Waits waits_of(const Program& program) {
  Waits waits;
  for (const Endpoint& fetch : program.fetches)
    waits.push_back(waits_of(fetch.node));
  return waits;
}

bool may_wait(const Node& node) {
  return !node.is_merge() && !node.is_next_iteration() &&
         !node.is_loop_cond() && !node.is_exit() && node.op() != "Placeholder";
}

// A node in the frame of `node` that waits for a new Placeholder.
Node* gate_for(Graph& graph, const Node& node) {
  const FrameMap frames = must(FrameMap::build(graph));
  Node* gate = placeholder(graph, graph.unique_name("gate"), DataType::kFloat);
  std::vector<const StaticFrame*> nested;
  for (FrameId id = frames.of(node); id != FrameId::kRoot;
       id = frames.frame(id).parent)
    nested.push_back(&frames.frame(id));
  for (auto it = nested.rbegin(); it != nested.rend(); ++it)
    gate = add(graph, graph.unique_name("gate_in"), "Enter", {{gate, 0}},
               {{"frame_name", (*it)->name},
                {"is_constant", true},
                {"parallel_iterations", (*it)->parallel_iterations}});
  return gate;
}

void add_controls(Graph& graph, Node* node, Node* more) {
  std::vector<Node*> controls(node->control_inputs().begin(),
                              node->control_inputs().end());
  controls.push_back(more);
  graph.set_control_inputs(node, controls);
}

// Whether the pass changed the program that `change` has been applied to;
// checks what it must keep.
bool keeps_waits(const Case& each,
                 const std::function<void(Graph&, Strings& fetches)>& change) {
  Graph graph;
  Strings fetches = each.build(graph);
  change(graph, fetches);
  Program program = program_of(graph, fetches);
  if (each.is_cleaned) must(remove_identities(program, {}));
  must(infer_loop_shapes(program.graph));
  std::map<std::string, uint32_t> ids;
  for (const Node* node : program.graph.nodes()) ids[node->name()] = node->id();
  const Waits before = waits_of(program);
  const std::string text = dump(program.graph);
  INFO(text);
  const bool changed = must(each.pass(program));
  must(validate(program.graph));
  INFO(dump(program.graph));
  const Waits after = waits_of(program);
  REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(std::ranges::includes(after[i], before[i]));
    if (!each.waits_together) CHECK(after[i].size() == before[i].size());
  }
  if (!changed) CHECK(dump(program.graph) == text);
  // A node that stays has its id, and no other has it.
  for (const Node* node : program.graph.nodes()) {
    const auto known = ids.find(node->name());
    if (known != ids.end()) CHECK(known->second == node->id());
  }
  return changed;
}

Tensor ones(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  for (float& value : tensor.mutable_flat<float>()) value = 1;
  return tensor;
}

// for (i < 10) h = change(h)
Output loop_of(
    const Scope& s, const Output& start,
    const std::function<Output(const Scope&, const Output&)>& change) {
  return while_loop(
      s.named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 10); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), change(in, v[1])};
      },
      {0, start})[1];
}

Output floats(const Scope& s, const char* name, PartialShape shape) {
  return ops::placeholder(s.named(name), DataType::kFloat, std::move(shape));
}

template <PassFunction kPass>
Result<bool> run(Program& program) {
  const Adder adder;
  return kPass(program, {.evaluator = &adder});
}

Strings result_of(const Scope& s, const Outputs& results) {
  must(s.status());
  Strings fetches;
  for (const Output& result : results) fetches.push_back(result.name());
  return fetches;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"constants",
                 [](Graph& graph) -> Strings {
                   Node* a = number(graph, "a", 1);
                   Node* b = number(graph, "b", 2);
                   Node* y = placeholder(graph, "y", DataType::kInt32, {2});
                   add(graph, "sum", "AddV2", {{a, 0}, {b, 0}});
                   add(graph, "out", "AddV2", {{graph.find("sum"), 0}, {y, 0}});
                   return {"out"};
                 },
                 run<fold_constants>});
  all.push_back({"shapes",
                 [](Graph& graph) -> Strings {
                   Node* x = placeholder(graph, "x", DataType::kFloat, {2, 3});
                   Node* y = placeholder(graph, "y", DataType::kInt32, {2});
                   Node* neg = add(graph, "neg", "Neg", {{x, 0}});
                   Node* shape = add(graph, "shape", "Shape", {{neg, 0}});
                   Node* rank = add(graph, "rank", "Rank", {{neg, 0}});
                   Node* sum = add(graph, "sum", "AddV2", {{shape, 0}, {y, 0}});
                   add(graph, "out", "AddV2", {{sum, 0}, {rank, 0}});
                   return {"out"};
                 },
                 run<fold_constants>});
  all.push_back(
      {"identities",
       [](Graph& graph) -> Strings {
         Node* x = placeholder(graph, "x", DataType::kFloat, {2, 3});
         Node* id = add(graph, "id", "Identity", {{x, 0}});
         Node* size = constant(graph, "size", Tensor::vector<int32_t>({2, 3}));
         Node* same = add(graph, "same", "Reshape", {{id, 0}, {size, 0}});
         Node* cast = add(graph, "cast", "Cast", {{same, 0}},
                          {{"DstT", DataType::kFloat}});
         add(graph, "out", "Neg", {{cast, 0}});
         return {"out", "id"};
       },
       run<remove_identities>});
  all.push_back({"equal nodes",
                 [](Graph& graph) -> Strings {
                   Node* x = placeholder(graph, "x", DataType::kFloat, {2});
                   Node* a = add(graph, "a", "Neg", {{x, 0}});
                   Node* b = add(graph, "b", "Neg", {{x, 0}});
                   Node* c = add(graph, "c", "Tanh", {{a, 0}});
                   Node* d = add(graph, "d", "Tanh", {{b, 0}});
                   add(graph, "out", "AddV2", {{c, 0}, {d, 0}});
                   return {"out", "d"};
                 },
                 run<share_subexpressions>,
                 {{"a", "b"}, {"c", "d"}, {"a", "b", "c", "d"}, {"out"}}});
  all.push_back(
      {"dead branches",
       [](Graph& graph) -> Strings {
         Node* x = placeholder(graph, "x", DataType::kInt32);
         Node* p = constant(graph, "p", Tensor::scalar(true));
         Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
         Node* no = add(graph, "no", "Neg", {{branch, 0}});
         Node* yes = add(graph, "yes", "Square", {{branch, 1}});
         Node* merge = add(graph, "merge", "Merge", {{no, 0}, {yes, 0}});
         add(graph, "out", "Neg", {{merge, 0}});
         add(graph, "index", "Neg", {{merge, 1}});
         return {"out", "index"};
       },
       run<remove_dead_branches>,
       {{"p"}, {"branch"}, {"yes"}, {"out"}, {"p", "yes"}}});
  all.push_back(
      {"scales",
       [](Graph& graph) -> Strings {
         Node* x = placeholder(graph, "x", DataType::kFloat, {4, 3});
         Node* w = constant(graph, "w", ones({3, 2}));
         Node* product = add(graph, "product", "MatMul", {{x, 0}, {w, 0}});
         Node* two = constant(graph, "two", ones({2}));
         Node* scaled = add(graph, "scaled", "Mul", {{product, 0}, {two, 0}});
         Node* three = constant(graph, "three", ones({2}));
         add(graph, "out", "AddV2", {{scaled, 0}, {three, 0}});
         return {"out"};
       },
       run<absorb_scales>});
  all.push_back(
      {"invariants",
       [](Graph& graph) -> Strings {
         const auto loop_constant = [&](const char* name, Node* value) {
           return add(graph, name, "Enter", {{value, 0}},
                      {{"frame_name", "loop"}, {"is_constant", true}});
         };
         Node* x = placeholder(graph, "x", DataType::kInt32);
         Node* y = placeholder(graph, "y", DataType::kInt32);
         const Counter c = counter(graph, "loop", {x, 0}, {x, 0});
         Node* in_x = loop_constant("in_x", x);
         Node* in_y = loop_constant("in_y", y);
         Node* product = add(graph, "product", "Mul", {{in_x, 0}, {in_y, 0}});
         Node* square = add(graph, "square", "Square", {{product, 0}});
         must(graph.set_input(c.less, 1, {square, 0}));
         return {"loop/exit"};
       },
       run<hoist_invariants>});
  all.push_back({"element-wise chains",
                 [](Graph& graph) -> Strings {
                   Node* x = placeholder(graph, "x", DataType::kFloat, {32});
                   Node* y = placeholder(graph, "y", DataType::kFloat, {32});
                   Node* a = add(graph, "a", "Tanh", {{x, 0}});
                   Node* b = add(graph, "b", "Mul", {{a, 0}, {y, 0}});
                   add(graph, "c", "Neg", {{b, 0}});
                   return {"c"};
                 },
                 run<fuse_elementwise>});
  all.push_back({"columns of a split",
                 [](Graph& graph) -> Strings {
                   Node* x = placeholder(graph, "x", DataType::kFloat, {2, 64});
                   Node* axis = number(graph, "axis", 1);
                   Node* split = add(graph, "split", "Split",
                                     {{axis, 0}, {x, 0}}, {{"num_split", 2}});
                   Node* a = add(graph, "a", "Tanh", {{split, 0}});
                   Node* b = add(graph, "b", "Sigmoid", {{split, 1}});
                   add(graph, "c", "Mul", {{a, 0}, {b, 0}});
                   return {"c"};
                 },
                 run<fuse_elementwise>});
  all.push_back(
      {"layers",
       [](Graph& graph) -> Strings {
         Node* x = placeholder(graph, "x", DataType::kFloat, {4, 32});
         Node* w = constant(graph, "w", ones({32, 32}));
         Node* offset = constant(graph, "offset", ones({32}));
         Node* product = add(graph, "product", "MatMul", {{x, 0}, {w, 0}});
         Node* bias =
             add(graph, "bias", "BiasAdd", {{product, 0}, {offset, 0}});
         Node* y = placeholder(graph, "y", DataType::kFloat, {4, 32});
         Node* sum = add(graph, "sum", "AddV2", {{bias, 0}, {y, 0}});
         add(graph, "out", "Relu", {{sum, 0}});
         return {"out"};
       },
       run<fuse_layers>});
  all.push_back(
      {"layers of joined columns",
       [](Graph& graph) -> Strings {
         Node* x = placeholder(graph, "x", DataType::kFloat, {4, 16});
         Node* y = placeholder(graph, "y", DataType::kFloat, {4, 16});
         Node* axis = number(graph, "axis", 1);
         Node* join =
             add(graph, "join", "ConcatV2", {{x, 0}, {y, 0}, {axis, 0}});
         Node* w = constant(graph, "w", ones({32, 32}));
         Node* product = add(graph, "product", "MatMul", {{join, 0}, {w, 0}});
         add(graph, "out", "Tanh", {{product, 0}});
         return {"out"};
       },
       run<fuse_layers>});
  all.push_back(
      {"groups",
       [](Graph& graph) -> Strings {
         Node* x = placeholder(graph, "x", DataType::kFloat, {32, 32});
         Node* a = add(graph, "a", "Tanh", {{x, 0}});
         Node* b = add(graph, "b", "Neg", {{a, 0}});
         Node* c = add(graph, "c", "Mul", {{a, 0}, {b, 0}});
         Node* axis = number(graph, "axis", 1);
         add(graph, "join", "ConcatV2", {{b, 0}, {c, 0}, {axis, 0}});
         return {"a", "join"};
       },
       run<group_elementwise>,
       {},
       false,
       true});
  all.push_back(
      {"reads ahead",
       [](Graph& graph) -> Strings {
         const Scope s(graph);
         const auto v = ops::variable(s.named("v"), DataType::kFloat, {4, 4});
         return result_of(s, {loop_of(s, floats(s, "x", {4, 4}),
                                      [&](const Scope& in, const Output& h) {
                                        return ops::matmul(in, h,
                                                           ops::read(in, v));
                                      })});
       },
       run<read_ahead>});
  all.push_back(
      {"saved constants",
       [](Graph& graph) -> Strings {
         Lists lists{graph};
         const Endpoint x{placeholder(graph, "x", DataType::kFloat, {2, 3}), 0};
         const Endpoint pushed{
             add(graph, "pushed", "Enter", {x},
                 {{"frame_name", "fill"}, {"is_constant", true}}),
             0};
         const auto filled =
             testing::loop(graph, "fill", {lists.empty("empty")},
                           [&](const Values& in) -> Values {
                             return {lists.push("push", in[0], pushed)};
                           });
         const auto emptied = testing::loop(
             graph, "drain", {{filled.exits[0], 0}, x},
             [&](const Values& in) -> Values {
               Node* pop = lists.pop("pop", in[0]);
               Node* used = add(graph, "used", "AddV2", {in[1], {pop, 1}});
               return {{pop, 0}, {used, 0}};
             });
         return {emptied.exits[1]->name()};
       },
       run<read_saved_constants>});
  all.push_back({"packed weights",
                 [](Graph& graph) -> Strings {
                   const Scope s(graph);
                   const Output w = floats(s, "w", {32, 32});
                   return result_of(
                       s, {loop_of(s, floats(s, "x", {4, 32}),
                                   [&](const Scope& in, const Output& h) {
                                     return ops::matmul(in, h, w);
                                   })});
                 },
                 run<pack_weights>,
                 {},
                 true});
  all.push_back({"sums of packed products",
                 [](Graph& graph) -> Strings {
                   const Scope s(graph);
                   const Output w = floats(s, "w", {32, 32});
                   const Output u = floats(s, "u", {32, 32});
                   const Output y = floats(s, "y", {4, 32});
                   return result_of(
                       s, {loop_of(s, floats(s, "x", {4, 32}),
                                   [&](const Scope& in, const Output& h) {
                                     return ops::add(in, ops::matmul(in, h, w),
                                                     ops::matmul(in, y, u));
                                   })});
                 },
                 run<pack_weights>,
                 {},
                 true});
  all.push_back(
      {"sums of products",
       [](Graph& graph) -> Strings {
         const Scope s(graph);
         const Output a = floats(s, "a", {4, 2});
         const Output b = floats(s, "b", {2, 3});
         return result_of(
             s, {loop_of(s, floats(s, "w", {4, 3}),
                         [&](const Scope& in, const Output& w) {
                           return ops::add_n(in, {w, ops::matmul(in, a, b)});
                         })});
       },
       run<sum_products>,
       {},
       true});
  return all;
}

// What may be gated of a case.
std::vector<Strings> gated_of(const Case& each) {
  if (!each.gated.empty()) return each.gated;
  Graph graph;
  each.build(graph);
  std::vector<Strings> gated;
  for (const Node* node : graph.nodes())
    if (may_wait(*node)) gated.push_back({node->name()});
  return gated;
}

}  // namespace

TEST_CASE("each pass keeps what its nodes waited for, whichever it was") {
  for (const Case& each : cases()) {
    CAPTURE(each.name);
    CHECK(keeps_waits(each, [](Graph&, Strings&) {}));
    int changed = 0;
    for (const Strings& names : gated_of(each)) {
      CAPTURE(names.front());
      changed += keeps_waits(each, [&](Graph& graph, Strings&) {
        Node* gate = gate_for(graph, *graph.find(names.front()));
        for (const std::string& name : names)
          add_controls(graph, graph.find(name), gate);
      });
    }
    CHECK(changed > 0);
  }
}

TEST_CASE("each pass keeps who waited for its nodes") {
  for (const Case& each : cases()) {
    CAPTURE(each.name);
    int tried = 0;
    Graph whole;
    each.build(whole);
    const FrameMap frames = must(FrameMap::build(whole));
    for (const Node* node : whole.nodes()) {
      // Fetches are of the root.
      if (frames.output_of(*node) != FrameId::kRoot ||
          frames.of(*node) != FrameId::kRoot || node->name() == "no")
        continue;
      CAPTURE(node->name());
      ++tried;
      keeps_waits(each, [&](Graph& graph, Strings& fetches) {
        Node* other = placeholder(graph, "other", DataType::kFloat);
        Node* waits = add(graph, "waits", "Tanh", {{other, 0}}, {},
                          {graph.find(node->name())});
        fetches.push_back(waits->name());
      });
    }
    CHECK(tried > 0);
  }
}

TEST_CASE("what each pass makes is placed where the nodes were") {
  const std::string device = "/device:CPU:1";
  size_t num_changed = 0;
  for (const Case& each : cases()) {
    CAPTURE(each.name);
    num_changed +=
        keeps_waits({each.name,
                     [&](Graph& graph) {
                       Graph plain;
                       const Strings fetches = each.build(plain);
                       std::vector<NodeDef> nodes;
                       for (const Node* node : plain.nodes()) {
                         NodeDef def = Graph::to_def(*node);
                         def.device = device;
                         nodes.push_back(std::move(def));
                       }
                       must(graph.extend(nodes));
                       return fetches;
                     },
                     [&](Program& program) {
                       const Result<bool> result = each.pass(program);
                       for (const Node* node : program.graph.nodes()) {
                         CAPTURE(node->name());
                         CHECK(node->device() == device);
                       }
                       return result;
                     }},
                    [](Graph&, Strings&) {});
  }
  // An identity that has a place stays, and hides one sum of products.
  CHECK(num_changed + 1 >= cases().size());
}
