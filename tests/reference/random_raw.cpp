// The part of the generator that builds primitives directly.
#include <algorithm>

#include "tests/reference/random_program.h"

namespace tagflow::reference {

namespace ops = graph::ops;
using graph::Endpoint;
using graph::Node;

void RandomProgram::raw(const Scope& s, Pool& pool, int depth) {
  // The nodes of a raw loop belong to no context: it must be outside of all.
  switch (below(depth == 0 ? 6 : 5)) {
    case 0:
      return diamond(s, pool);
    case 1:
      return three_way(s, pool);
    case 2:
      return dead_or_alive(s, pool);
    case 3:
      return triggered(s, pool);
    case 4:
      return guarded_loop(s, pool);
    default:
      return raw_loop(pool);
  }
}

Value RandomProgram::as_int(const Scope& s, const Output& index) {
  return {ops::cast(s, index, DataType::kInt64), Kind::kInt, 2};
}

// Switch, something on each side, Merge.
void RandomProgram::diamond(const Scope& s, Pool& pool) {
  const Value x = pick(s, pool, Kind::kInt);
  const auto sides =
      ops::switch_(s, x.output, pick(s, pool, Kind::kBool).output);
  const Output f = one_in(2) ? ops::neg(s, sides.on_false) : sides.on_false;
  const Output t = one_in(2) ? ops::identity(s, sides.on_true) : sides.on_true;
  const auto joined = one_in(2) ? ops::merge(s, {f, t}) : ops::merge(s, {t, f});
  pool.push_back({joined.output, Kind::kInt, x.bound});
  pool.push_back(as_int(s, joined.value_index));
}

// One of three inputs of a Merge is live.
void RandomProgram::three_way(const Scope& s, Pool& pool) {
  const Value x = pick(s, pool, Kind::kFloat);
  const auto outer =
      ops::switch_(s, x.output, pick(s, pool, Kind::kBool).output);
  const auto inner =
      ops::switch_(s, outer.on_true, pick(s, pool, Kind::kBool).output);
  const auto joined =
      ops::merge(s, {inner.on_true, outer.on_false, inner.on_false});
  pool.push_back({joined.output, Kind::kFloat});
  pool.push_back(as_int(s, joined.value_index));
}

// One side of a Switch, and what follows from it, also by a control edge.
void RandomProgram::dead_or_alive(const Scope& s, Pool& pool) {
  const Value x = pick(s, pool, Kind::kInt);
  const auto sides =
      ops::switch_(s, x.output, pick(s, pool, Kind::kBool).output);
  const Output side = one_in(2) ? sides.on_true : sides.on_false;
  Output result = side;
  if (one_in(2)) {
    // The value comes from elsewhere, only the deadness from here.
    const Output gate = ops::identity(s, side);
    const Scope gated = s.with_control_dependencies(gate);
    const Output y = pick(s, pool, Kind::kInt).output;
    result = ops::identity(gated, y);
    pool.push_back({result, Kind::kInt, int64_t(1) << 40, true});
    return;
  }
  const auto dead = all_of(pool, Kind::kInt, true);
  if (!dead.empty())
    result = ops::maximum(s, side, dead[below(uint32_t(dead.size()))]->output);
  pool.push_back({result, Kind::kInt, int64_t(1) << 40, true});
}

// Runs after something, dead or not.
void RandomProgram::triggered(const Scope& s, Pool& pool) {
  const auto dead = all_of(pool, Kind::kInt, true);
  if (dead.empty()) return dead_or_alive(s, pool);
  const Output trigger = ops::control_trigger(
      s.with_control_dependencies(dead[below(uint32_t(dead.size()))]->output));
  const Value x = pick(s, pool, Kind::kInt);
  pool.push_back({ops::neg(s.with_control_dependencies(trigger), x.output),
                  Kind::kInt, x.bound});
}

// A loop whose variables all come from one side of a Switch.
void RandomProgram::guarded_loop(const Scope& s, Pool& pool) {
  const Output pred = pick(s, pool, Kind::kBool).output;
  const Value x = pick(s, pool, Kind::kInt);
  const Value step = pick(s, pool, Kind::kInt);
  const Output limit = small(s, pool, 4).output;
  const auto zero = ops::switch_(s, ops::constant(s, int64_t(0)), pred);
  const auto start = ops::switch_(s, x.output, pred);
  const bool side = one_in(2);
  const Outputs results = graph::while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], limit);
      },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output sum = ops::add(in, v[1], step.output);
        return {ops::add(in, v[0], 1), ops::floor_mod(in, sum, 1009)};
      },
      {side ? zero.on_true : zero.on_false,
       side ? start.on_true : start.on_false});
  const Output other = side ? start.on_false : start.on_true;
  const auto joined = ops::merge(s, {results[1], other});
  pool.push_back({results[0], Kind::kInt, 4, true});
  pool.push_back({joined.output, Kind::kInt, std::max<int64_t>(x.bound, 1009)});
  pool.push_back(as_int(s, joined.value_index));
}

Node* RandomProgram::add_raw(const char* op, std::vector<Endpoint> inputs,
                             AttrMap attrs) {
  Result<Node*> node =
      case_.graph.add(case_.graph.unique_name(std::string("raw/") + op), op,
                      inputs, std::move(attrs));
  if (node.ok()) return *node;
  root_.fail(std::move(node).status());
  return nullptr;
}

// A loop that while_loop() would not build: the back edge may be the first
// input of a Merge, whose index is used; two Exits share a Switch; a value of
// the predicate leaves the loop.
void RandomProgram::raw_loop(Pool& pool) {
  const Value x = pick(root_, pool, Kind::kInt);
  const Value limit = small(root_, pool, 5);
  const Output zero = ops::constant(root_, int64_t(0));
  const Output one = ops::constant(root_, int64_t(1));
  const Output modulus = ops::constant(root_, int64_t(1009));
  if (!root_.ok()) return;
  const std::string frame =
      case_.graph.unique_name("raw/Enter") + "/raw_context";
  const auto enter = [&](const Output& value, bool constant) {
    return add_raw("Enter", {value.endpoint()},
                   {{"frame_name", frame}, {"is_constant", constant}});
  };
  const bool back_first = one_in(2);
  const auto merge = [&](Node* entered) {
    std::vector<Endpoint> inputs = {{entered, 0}, {}};
    if (back_first) std::swap(inputs[0], inputs[1]);
    Node* const node = add_raw("Merge", std::move(inputs),
                               {{"N", 2}, {"T", DataType::kInt64}});
    if (node != nullptr)
      case_.graph.set_output_shape(node, 0, PartialShape::scalar());
    return node;
  };
  Node* const limit_in = enter(limit.output, true);
  Node* const one_in_loop = enter(one, true);
  Node* const modulus_in = enter(modulus, true);
  Node* const i = merge(enter(zero, false));
  Node* const a = merge(enter(x.output, false));
  Node* const index = add_raw("Cast", {{a, 1}}, {{"DstT", DataType::kInt64}});
  Node* const sum = add_raw("AddV2", {{a, 0}, {index, 0}});
  Node* const pred =
      add_raw("LoopCond", {{add_raw("Less", {{i, 0}, {limit_in, 0}}), 0}});
  Node* const switch_i = add_raw("Switch", {{i, 0}, {pred, 0}});
  Node* const switch_a = add_raw("Switch", {{sum, 0}, {pred, 0}});
  const auto next = [&](Node* merge_node, Endpoint value) {
    Node* const back = add_raw("NextIteration", {value});
    if (root_.ok())
      root_.fail(
          case_.graph.set_input(merge_node, back_first ? 0 : 1, {back, 0}));
  };
  next(i, {add_raw("AddV2", {{switch_i, 1}, {one_in_loop, 0}}), 0});
  next(a, {add_raw("FloorMod", {{switch_a, 1}, {modulus_in, 0}}), 0});
  const int64_t bound = std::max<int64_t>(x.bound, 1009) + 2;
  const auto exit = [&](Endpoint value) {
    pool.push_back({Output(add_raw("Exit", {value})), Kind::kInt, bound});
  };
  exit({switch_a, 0});
  exit({switch_i, 0});
  exit({switch_a, 0});
}

}  // namespace tagflow::reference
