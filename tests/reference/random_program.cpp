#include "tests/reference/random_program.h"

#include <algorithm>

namespace tagflow::reference {

namespace ops = graph::ops;

namespace {

constexpr int64_t kLength = 3;          // of vectors
constexpr int64_t kModulus = 1009;      // of what loops carry
constexpr int64_t kMaxBound = 1 << 30;  // products stay within int64

bool is_int(Kind kind) {
  return kind == Kind::kInt || kind == Kind::kIntVector;
}

}  // namespace

Status RandomProgram::build() {
  Pool pool;
  feed_inputs(pool);
  block(root_, pool, 0, 4 + int(below(5)));
  if (pool.empty()) pool.push_back(constant(root_, Kind::kInt));
  fetch(pool);
  return root_.status();
}

void RandomProgram::feed_inputs(Pool& pool) {
  for (uint32_t i = 0, n = below(4); i < n; ++i) {
    const Kind kind = any_kind();
    // The value of a constant, but fed.
    graph::Graph scratch;
    const Value like = constant(Scope(scratch), kind);
    const Output input = ops::placeholder(
        root_.named("feed"), like.output.dtype(), like.output.shape());
    pool.push_back({input, kind, like.bound});
    case_.feeds.emplace_back(input.name(),
                             like.output.node()->attr<Tensor>("value").value());
  }
}

void RandomProgram::fetch(const Pool& pool) {
  for (uint32_t i = 0, n = 1 + below(6); i < n; ++i) {
    // The last values depend on the most.
    const uint32_t back = below(uint32_t(std::min<size_t>(pool.size(), 12)));
    const Output output = pool[pool.size() - 1 - back].output;
    if (output.valid()) case_.fetches.push_back(output.name());
  }
}

Value RandomProgram::constant(const Scope& s, Kind kind) {
  const auto number = [this] { return int64_t(below(15)) - 5; };
  const auto fraction = [this] { return float(below(17)) * 0.25f - 1.5f; };
  switch (kind) {
    case Kind::kInt:
      return {ops::constant(s, number()), kind, 9};
    case Kind::kFloat:
      return {ops::constant(s, fraction()), kind};
    case Kind::kIntVector:
      return {ops::constant(s, {number(), number(), number()}), kind, 9};
    case Kind::kFloatVector:
      return {ops::constant(s, {fraction(), fraction(), fraction()}), kind};
    case Kind::kBool:
      break;
  }
  return {ops::constant(s, below(2) == 1), Kind::kBool};
}

std::vector<const Value*> RandomProgram::all_of(const Pool& pool, Kind kind,
                                                bool dead) const {
  std::vector<const Value*> found;
  for (const Value& value : pool) {
    if (value.kind == kind && value.may_be_dead == dead)
      found.push_back(&value);
  }
  return found;
}

// Never one that may be dead: those have their own ops.
Value RandomProgram::pick(const Scope& s, const Pool& pool, Kind kind) {
  const auto found = all_of(pool, kind, false);
  const uint32_t n = uint32_t(found.size());
  if (n == 0 || one_in(8)) return constant(s, kind);
  // Half the time among the newest, so that programs get deep.
  const uint32_t window = one_in(2) ? std::min(n, 3u) : n;
  return *found[n - 1 - below(window)];
}

Value RandomProgram::small(const Scope& s, const Pool& pool, int64_t limit) {
  return {ops::floor_mod(s, pick(s, pool, Kind::kInt).output, limit),
          Kind::kInt, limit - 1};
}

Value RandomProgram::bounded(const Scope& s, Value value, int64_t bound) {
  if (!is_int(value.kind) || value.bound <= bound) return value;
  value.output = ops::floor_mod(s, value.output, kModulus);
  value.bound = kModulus;
  return value;
}

void RandomProgram::block(const Scope& s, Pool& pool, int depth, int steps) {
  for (int i = 0; i < steps && budget_ > 0 && s.ok(); ++i) step(s, pool, depth);
}

void RandomProgram::step(const Scope& s, Pool& pool, int depth) {
  --budget_;
  const bool deeper = depth < options_.max_depth;
  switch (below(10)) {
    case 0:
    case 1:
    case 9:
      if (deeper) return loop(s, pool, depth);
      break;
    case 2:
      if (deeper) return conditional(s, pool, depth);
      break;
    case 3:
      if (options_.raw && !in_function_) return raw(s, pool, depth);
      break;
    case 4:
      if (deeper && options_.functions && one_in(2))
        return functional(s, pool, depth);
      if (deeper && one_in(3)) return growing_loop(s, pool);
      break;
    case 5:  // waits for something
      if (!pool.empty()) {
        const Value& before = pool[below(uint32_t(pool.size()))];
        if (!before.may_be_dead)
          return simple_op(s.with_control_dependencies(before.output), pool);
      }
      break;
    default:
      break;
  }
  simple_op(s, pool);
}

void RandomProgram::simple_op(const Scope& s, Pool& pool) {
  const Kind kind = any_kind();
  Value value;
  switch (kind) {
    case Kind::kInt:
      value = int_op(s, pool);
      break;
    case Kind::kFloat:
      value = float_op(s, pool);
      break;
    case Kind::kBool:
      value = bool_op(s, pool);
      break;
    default:
      value = vector_op(s, pool, kind);
      break;
  }
  pool.push_back(bounded(s, value, kMaxBound));
}

Value RandomProgram::int_op(const Scope& s, const Pool& pool) {
  const Value a = pick(s, pool, Kind::kInt);
  const Value b = pick(s, pool, Kind::kInt);
  const int64_t larger = std::max(a.bound, b.bound);
  switch (below(8)) {
    case 0:
      return {ops::sub(s, a.output, b.output), Kind::kInt, a.bound + b.bound};
    case 1:
      return {ops::mul(s, a.output, b.output), Kind::kInt, a.bound * b.bound};
    case 2:
      return {ops::maximum(s, a.output, b.output), Kind::kInt, larger};
    case 3:
      return {ops::neg(s, a.output), Kind::kInt, a.bound};
    case 4:
      return {ops::floor_mod(s, a.output, 7), Kind::kInt, 6};
    case 5:
      return {
          ops::select(s, pick(s, pool, Kind::kBool).output, a.output, b.output),
          Kind::kInt, larger};
    case 6:
      return {ops::reduce_sum(s, pick(s, pool, Kind::kIntVector).output, 0),
              Kind::kInt, kLength * kMaxBound};
    default:
      return {ops::add(s, a.output, b.output), Kind::kInt, a.bound + b.bound};
  }
}

Value RandomProgram::float_op(const Scope& s, const Pool& pool) {
  const Output a = pick(s, pool, Kind::kFloat).output;
  const Output b = pick(s, pool, Kind::kFloat).output;
  switch (below(7)) {
    case 0:
      return {ops::sub(s, a, b), Kind::kFloat};
    case 1:
      return {ops::mul(s, a, b), Kind::kFloat};
    case 2:
      return {ops::maximum(s, a, b), Kind::kFloat};
    case 3:
      return {ops::cast(s, pick(s, pool, Kind::kInt).output, DataType::kFloat),
              Kind::kFloat};
    case 4:
      return {ops::reduce_sum(s, pick(s, pool, Kind::kFloatVector).output, 0),
              Kind::kFloat};
    case 5:
      return {ops::select(s, pick(s, pool, Kind::kBool).output, a, b),
              Kind::kFloat};
    default:
      return {ops::add(s, a, b), Kind::kFloat};
  }
}

Value RandomProgram::bool_op(const Scope& s, const Pool& pool) {
  switch (below(5)) {
    case 0:
      return {ops::less(s, pick(s, pool, Kind::kFloat).output,
                        pick(s, pool, Kind::kFloat).output),
              Kind::kBool};
    case 1:
      return {ops::logical_not(s, pick(s, pool, Kind::kBool).output),
              Kind::kBool};
    case 2:
      return {ops::logical_and(s, pick(s, pool, Kind::kBool).output,
                               pick(s, pool, Kind::kBool).output),
              Kind::kBool};
    case 3:
      return {ops::equal(s, small(s, pool, 2).output, 0), Kind::kBool};
    default:
      return {ops::less(s, pick(s, pool, Kind::kInt).output,
                        pick(s, pool, Kind::kInt).output),
              Kind::kBool};
  }
}

Value RandomProgram::vector_op(const Scope& s, const Pool& pool, Kind kind) {
  const Kind scalar = kind == Kind::kIntVector ? Kind::kInt : Kind::kFloat;
  const Value a = pick(s, pool, kind);
  const Value b = pick(s, pool, one_in(2) ? kind : scalar);
  switch (below(4)) {
    case 0:
      return {ops::sub(s, a.output, b.output), kind, a.bound + b.bound};
    case 1:
      return {ops::mul(s, b.output, a.output), kind, a.bound * b.bound};
    case 2:
      return {ops::neg(s, a.output), kind, a.bound};
    default:
      return {ops::add(s, a.output, b.output), kind, a.bound + b.bound};
  }
}

void RandomProgram::conditional(const Scope& s, Pool& pool, int depth) {
  const Output pred = pick(s, pool, Kind::kBool).output;
  std::vector<Value> results;
  for (uint32_t i = 0, n = 1 + below(3); i < n; ++i)
    results.push_back({Output(), any_kind()});
  const auto branch = [&](const Scope& in) {
    Pool inner = pool;
    block(in, inner, depth + 1, int(below(4)));
    Outputs outputs;
    for (Value& result : results) {
      const Value value = pick(in, inner, result.kind);
      result.bound = std::max(result.bound, value.bound);
      outputs.push_back(value.output);
    }
    return outputs;
  };
  const Outputs outputs = one_in(6)
                              ? graph::switch_case(s, small(s, pool, 4).output,
                                                   {branch, branch, branch})
                              : graph::cond(s, pred, branch, branch);
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].output = outputs[i];
    pool.push_back(results[i]);
  }
}

void RandomProgram::loop(const Scope& s, Pool& pool, int depth) {
  // Fewer trips further in: a program must not take long.
  const int64_t trips = depth == 0 ? 8 : depth == 1 ? 4 : 2;
  std::vector<Value> vars;
  for (uint32_t i = 0, n = 1 + below(4); i < n; ++i) {
    Value var = pick(s, pool, any_kind());
    if (is_int(var.kind)) var.bound = std::max(var.bound, kModulus);
    vars.push_back(var);
  }
  const size_t counter = below(uint32_t(vars.size()) + 1);
  vars.insert(vars.begin() + int64_t(counter),
              {ops::constant(s, int64_t(0)), Kind::kInt, trips});
  const Output limit =
      one_in(2) ? ops::constant(s, trips) : small(s, pool, trips + 1).output;
  const bool capped = one_in(5);

  std::vector<Value> inside = vars;
  Pool of_predicate;
  const auto predicate = [&](const Scope& in, const Outputs& v) {
    for (size_t i = 0; i < vars.size(); ++i) inside[i].output = v[i];
    of_predicate = pool;
    of_predicate.insert(of_predicate.end(), inside.begin(), inside.end());
    if (capped && one_in(2)) return ops::constant(in, true);
    const Output more = ops::less(in, v[counter], limit);
    if (!one_in(4)) return more;
    return ops::logical_and(in, more, bool_op(in, of_predicate).output);
  };
  const auto body = [&](const Scope& in, const Outputs& v) {
    for (size_t i = 0; i < vars.size(); ++i) inside[i].output = v[i];
    // Rarely what the predicate saw.
    Pool around = one_in(8) ? of_predicate : pool;
    return loop_body(in, std::move(around), depth + 1, inside, counter);
  };
  graph::WhileOptions options;
  options.parallel_iterations = 1 + int64_t(below(4)) * 3;
  if (capped) options.maximum_iterations = int64_t(below(uint32_t(trips) + 1));
  graph::Inputs initial;
  for (const Value& var : vars) initial.add(var.output);
  const Outputs results =
      graph::while_loop(s, predicate, body, initial, options);
  for (size_t i = 0; i < vars.size(); ++i) {
    vars[i].output = results[i];
    if (!one_in(4)) pool.push_back(vars[i]);  // some Exits have no consumer
  }
}

Outputs RandomProgram::loop_body(const Scope& s, Pool pool, int depth,
                                 const std::vector<Value>& vars,
                                 size_t counter) {
  pool.insert(pool.end(), vars.begin(), vars.end());
  block(s, pool, depth, int(below(5)));
  Outputs next;
  for (size_t i = 0; i < vars.size(); ++i) {
    if (i == counter) {
      next.push_back(ops::add(s, vars[i].output, 1));
    } else if (one_in(5)) {
      next.push_back(vars[i].output);  // passes through
    } else {
      const Value value = pick(s, pool, vars[i].kind);
      next.push_back(bounded(s, value, vars[i].bound).output);
    }
  }
  return next;
}

// A vector that is longer after each trip.
void RandomProgram::growing_loop(const Scope& s, Pool& pool) {
  const Output limit = small(s, pool, 4).output;
  const Output start = pick(s, pool, Kind::kFloatVector).output;
  const Output more = pick(s, pool, Kind::kFloatVector).output;
  const Outputs results = graph::while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], limit);
      },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::concat(in, {v[1], more}, 0)};
      },
      {Tensor::scalar(int64_t(0)), start},
      {.shape_invariants = {PartialShape::scalar(), {-1}}});
  pool.push_back({ops::reduce_sum(s, results[1], 0), Kind::kFloat});
}

}  // namespace tagflow::reference
