// The functions of RandomProgram.
#include <algorithm>

#include "graph/builder/function.h"
#include "graph/function.h"
#include "tests/reference/random_program.h"

namespace tagflow::reference {

namespace ops = graph::ops;

namespace {

constexpr int64_t kVectorLength = 3;
constexpr int64_t kResultModulus = 1009;

DataType dtype_of(Kind kind) {
  switch (kind) {
    case Kind::kInt:
    case Kind::kIntVector:
      return DataType::kInt64;
    case Kind::kBool:
      return DataType::kBool;
    default:
      return DataType::kFloat;
  }
}

PartialShape shape_of(Kind kind) {
  return kind == Kind::kIntVector || kind == Kind::kFloatVector
             ? PartialShape({kVectorLength})
             : PartialShape::scalar();
}

std::vector<DataType> types_of(const std::vector<Value>& values) {
  std::vector<DataType> types;
  for (const Value& value : values) types.push_back(dtype_of(value.kind));
  return types;
}

graph::Inputs inputs_of(const std::vector<Value>& values) {
  graph::Inputs inputs;
  for (const Value& value : values) inputs.add(value.output);
  return inputs;
}

// With their shapes, which not every op knows.
void add_results(const Scope& s, Pool& pool, const std::vector<Value>& results,
                 const Outputs& outputs) {
  for (size_t i = 0; i < results.size(); ++i) {
    Value value = results[i];
    value.output = outputs[i];
    if (s.ok() && !value.output.shape().has_rank())
      value.output = Output(s.op("EnsureShape", {value.output},
                                 {{"shape", shape_of(value.kind)}}));
    pool.push_back(value);
  }
}

}  // namespace

void RandomProgram::functional(const Scope& s, Pool& pool, int depth) {
  switch (below(options_.raw && !in_function_ ? 5 : 4)) {
    case 0:
      return plain_call(s, pool, depth);
    case 1:
      return functional_branches(s, pool, depth);
    case 2:
      return functional_loop(s, pool, depth);
    case 4:
      return dead_calls(s, pool, depth);
    default:
      return recursion(s, pool, depth);
  }
}

std::vector<Value> RandomProgram::arguments(const Scope& s, const Pool& pool) {
  std::vector<Value> args;
  for (uint32_t i = 0, n = 1 + below(3); i < n; ++i)
    args.push_back(bounded(s, pick(s, pool, any_kind()), kResultModulus));
  return args;
}

// Nested definitions end in the library of the body that they are in; the
// program's has all of them.
std::string RandomProgram::define(const Scope& s,
                                  const std::vector<Value>& args,
                                  const std::vector<Value>& results,
                                  const FunctionBody& body,
                                  const std::string& name) {
  graph::FunctionSpec spec;
  spec.name = name;
  for (size_t i = 0; i < args.size(); ++i)
    spec.args.push_back({fmt::format("a{}", i), dtype_of(args[i].kind),
                         shape_of(args[i].kind)});
  for (const Value& result : results)
    spec.results.push_back({dtype_of(result.kind), shape_of(result.kind)});
  spec.body = [&](const Scope& in, const Outputs& outputs) {
    Pool inner = args;
    for (size_t i = 0; i < args.size(); ++i) inner[i].output = outputs[i];
    const bool outer = std::exchange(in_function_, true);
    Outputs made = body(in, std::move(inner));
    in_function_ = outer;
    return made;
  };
  graph::define_function(s, spec);
  if (const graph::FunctionDef* made = s.graph().library().find(name))
    if (&s.graph() != &case_.graph) {
      const Status added = case_.graph.library().add(*made);
      if (!added.ok()) s.fail(added);
    }
  return name;
}

std::string RandomProgram::random_function(const Scope& s,
                                           const std::vector<Value>& args,
                                           std::vector<Value>& results,
                                           int depth) {
  const auto body = [&](const Scope& in, Pool inner) {
    block(in, inner, depth + 1, int(below(4)));
    Outputs outputs;
    for (Value& result : results) {
      // At times an argument as it is.
      const Value value =
          bounded(in, pick(in, inner, result.kind), kResultModulus);
      result.bound = std::max(result.bound, value.bound);
      outputs.push_back(value.output);
    }
    return outputs;
  };
  return define(s, args, results, body, fmt::format("f{}", functions_++));
}

void RandomProgram::plain_call(const Scope& s, Pool& pool, int depth) {
  const std::vector<Value> args = arguments(s, pool);
  std::vector<Value> results(1 + below(2));
  for (Value& result : results) result.kind = any_kind();
  const std::string name = random_function(s, args, results, depth);
  // Twice, sometimes, from nodes of both forms.
  for (uint32_t i = 0, n = 1 + below(2); i < n && s.ok(); ++i) {
    if (one_in(2)) {
      add_results(s, pool, results, graph::call(s, name, inputs_of(args)));
    } else {
      add_results(s, pool, results,
                  ops::all_outputs(s.op("PartitionedCall", inputs_of(args),
                                        {{"f", FunctionRef{name, {}}},
                                         {"Tin", types_of(args)},
                                         {"Tout", types_of(results)}})));
    }
  }
}

void RandomProgram::functional_branches(const Scope& s, Pool& pool, int depth) {
  const std::vector<Value> args = arguments(s, pool);
  std::vector<Value> results(1 + below(2));
  for (Value& result : results) result.kind = any_kind();
  const bool is_case = one_in(3);
  std::vector<FunctionRef> branches;
  for (uint32_t i = 0, n = is_case ? 1 + below(3) : 2; i < n; ++i)
    branches.push_back({random_function(s, args, results, depth), {}});
  AttrMap attrs{{"Tin", types_of(args)}, {"Tout", types_of(results)}};
  graph::Inputs inputs;
  if (is_case) {
    inputs.add(ops::cast(s, small(s, pool, 5).output, DataType::kInt32));
    attrs["branches"] = branches;
  } else {
    inputs.add(pick(s, pool, Kind::kBool).output);
    attrs["then_branch"] = branches[0];
    attrs["else_branch"] = branches[1];
  }
  inputs.add(inputs_of(args));
  const char* op = is_case     ? one_in(2) ? "Case" : "StatelessCase"
                   : one_in(2) ? "If"
                               : "StatelessIf";
  add_results(s, pool, results,
              ops::all_outputs(s.op(op, inputs, std::move(attrs))));
}

void RandomProgram::functional_loop(const Scope& s, Pool& pool, int depth) {
  const int64_t trips = depth == 0 ? 6 : 2;
  std::vector<Value> vars = arguments(s, pool);
  for (Value& var : vars) var.bound = std::max(var.bound, kResultModulus);
  // Then a counter and its limit, which the body hands on.
  vars.push_back({ops::constant(s, int64_t(0)), Kind::kInt, trips});
  vars.push_back(small(s, pool, trips + 1));
  const size_t counter = vars.size() - 2;
  const auto more = [&](const Scope& in, Pool inner) -> Outputs {
    const Output less =
        ops::less(in, inner[counter].output, inner[counter + 1].output);
    if (!one_in(4)) return less;
    return ops::logical_and(in, less, bool_op(in, inner).output);
  };
  const std::string cond = define(s, vars, {{Output(), Kind::kBool}}, more,
                                  fmt::format("f{}", functions_++));
  const auto step = [&](const Scope& in, Pool inner) {
    const Pool start = inner;
    block(in, inner, depth + 1, int(below(4)));
    Outputs next;
    for (size_t i = 0; i < vars.size(); ++i) {
      if (i == counter) {
        next.push_back(ops::add(in, start[i].output, 1));
      } else if (i > counter || one_in(4)) {
        next.push_back(start[i].output);
      } else {
        const Value value = pick(in, inner, vars[i].kind);
        next.push_back(bounded(in, value, vars[i].bound).output);
      }
    }
    return next;
  };
  const std::string body =
      define(s, vars, vars, step, fmt::format("f{}", functions_++));
  add_results(s, pool, vars,
              ops::all_outputs(
                  s.op(one_in(2) ? "While" : "StatelessWhile", inputs_of(vars),
                       {{"T", types_of(vars)},
                        {"cond", FunctionRef{cond, {}}},
                        {"body", FunctionRef{body, {}}},
                        {"parallel_iterations", 1 + int64_t(below(4))}})));
}

// f(n, x) = n <= 0 ? base(x) : combine(f(n - 1, step(x)), ...).
void RandomProgram::recursion(const Scope& s, Pool& pool, int depth) {
  const int64_t calls = depth == 0 ? 5 : 2;
  std::vector<Value> args = arguments(s, pool);
  for (Value& arg : args) arg.bound = std::max(arg.bound, kResultModulus);
  args.push_back(small(s, pool, calls + 1));
  std::vector<Value> results = {{Output(), any_kind(), kResultModulus}};
  const std::string name = fmt::format("f{}", functions_++);
  const auto body = [&](const Scope& in, Pool inner) {
    const Value n = inner.back();
    const auto base = [&](const Scope& b) -> Outputs {
      Pool own = inner;
      block(b, own, depth + 2, int(below(3)));
      const Value value = pick(b, own, results[0].kind);
      return bounded(b, value, kResultModulus).output;
    };
    const auto step = [&](const Scope& b) -> Outputs {
      Pool own = inner;
      block(b, own, depth + 2, int(below(3)));
      for (uint32_t i = 0, calls_made = 1 + below(2); i < calls_made; ++i) {
        graph::Inputs next;
        for (size_t k = 0; k + 1 < args.size(); ++k) {
          const Value value = pick(b, own, args[k].kind);
          next.add(bounded(b, value, args[k].bound).output);
        }
        next.add(ops::sub(b, n.output, 1));
        own.push_back(
            {graph::call(b, name, next)[0], results[0].kind, kResultModulus});
      }
      block(b, own, depth + 2, int(below(2)));
      const Value value = pick(b, own, results[0].kind);
      return bounded(b, value, kResultModulus).output;
    };
    return graph::cond(in, ops::greater(in, n.output, 0), step, base);
  };
  define(s, args, results, body, name);
  if (!s.ok()) return;
  add_results(s, pool, results, graph::call(s, name, inputs_of(args)));
}

// A function whose result is dead on one side, and a call or branches that
// have this as an argument, be it read or not.
void RandomProgram::dead_calls(const Scope& s, Pool& pool, int depth) {
  const Value x = bounded(s, pick(s, pool, Kind::kInt), kResultModulus);
  const Value p = pick(s, pool, Kind::kBool);
  const auto split = [](const Scope& in, Pool args) -> Outputs {
    return {ops::switch_(in, args[0].output, args[1].output).on_true};
  };
  const std::string name =
      define(s, {x, p}, {x}, split, fmt::format("f{}", functions_++));
  if (!s.ok()) return;
  std::vector<Value> args = arguments(s, pool);
  const uint32_t at = below(uint32_t(args.size()));
  args[at] = x;
  args[at].output = graph::call(s, name, inputs_of({x, p}))[0];
  Pool made;
  add_results(s, made, {args[at]}, {args[at].output});
  std::vector<Value> results = {{Output(), any_kind()}};
  if (one_in(2)) {
    const std::string reader = random_function(s, args, results, depth);
    add_results(s, made, results, graph::call(s, reader, inputs_of(args)));
  } else {
    const FunctionRef taken{random_function(s, args, results, depth), {}};
    const FunctionRef other{random_function(s, args, results, depth), {}};
    graph::Inputs inputs;
    inputs.add(pick(s, pool, Kind::kBool).output);
    inputs.add(inputs_of(args));
    add_results(s, made, results,
                ops::all_outputs(s.op("If", inputs,
                                      {{"then_branch", taken},
                                       {"else_branch", other},
                                       {"Tin", types_of(args)},
                                       {"Tout", types_of(results)}})));
  }
  for (Value& value : made) {
    value.may_be_dead = true;
    pool.push_back(value);
  }
}

}  // namespace tagflow::reference
