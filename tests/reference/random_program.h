// The generator behind random_graph().
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/builder/builder.h"
#include "tests/reference/random_graph.h"

namespace tagflow::reference {

using graph::Output;
using graph::Outputs;
using graph::Scope;

enum class Kind : uint8_t { kInt, kFloat, kIntVector, kFloatVector, kBool };
inline constexpr uint32_t kKinds = 5;

// A tensor of the program.
struct Value {
  Output output;
  Kind kind = Kind::kInt;
  // Of kInt and kIntVector: no element is further from 0.
  int64_t bound = 0;
  bool may_be_dead = false;
};

// What a block can use: its own values and those of the blocks around it.
using Pool = std::vector<Value>;

class RandomProgram {
 public:
  RandomProgram(Choices& choices, const RandomOptions& options, Case& result)
      : choices_(choices),
        options_(options),
        case_(result),
        root_(result.graph),
        budget_(options.max_ops) {}

  Status build();

 private:
  // --- Decisions
  uint32_t below(uint32_t n) { return choices_.below(n); }
  bool one_in(uint32_t n) { return below(n) == n - 1; }
  Kind any_kind() { return Kind(below(kKinds)); }

  // --- Values: each of the kind, made if the pool has none.
  Value constant(const Scope& s, Kind kind);
  Value pick(const Scope& s, const Pool& pool, Kind kind);
  std::vector<const Value*> all_of(const Pool& pool, Kind kind,
                                   bool dead) const;
  // A number in [0, limit).
  Value small(const Scope& s, const Pool& pool, int64_t limit);
  // The same value, or reduced to have that bound at most.
  Value bounded(const Scope& s, Value value, int64_t bound);
  void feed_inputs(Pool& pool);

  // --- Ops: each adds values to the pool.
  void block(const Scope& s, Pool& pool, int depth, int steps);
  void step(const Scope& s, Pool& pool, int depth);
  void simple_op(const Scope& s, Pool& pool);
  Value int_op(const Scope& s, const Pool& pool);
  Value float_op(const Scope& s, const Pool& pool);
  Value bool_op(const Scope& s, const Pool& pool);
  Value vector_op(const Scope& s, const Pool& pool, Kind kind);
  void conditional(const Scope& s, Pool& pool, int depth);
  void loop(const Scope& s, Pool& pool, int depth);
  Outputs loop_body(const Scope& s, Pool pool, int depth,
                    const std::vector<Value>& vars, size_t counter);
  void growing_loop(const Scope& s, Pool& pool);

  // --- Primitives, in random_raw.cpp
  void raw(const Scope& s, Pool& pool, int depth);
  void diamond(const Scope& s, Pool& pool);
  void three_way(const Scope& s, Pool& pool);
  void dead_or_alive(const Scope& s, Pool& pool);
  void triggered(const Scope& s, Pool& pool);
  void guarded_loop(const Scope& s, Pool& pool);
  void raw_loop(Pool& pool);
  Value as_int(const Scope& s, const Output& index);
  graph::Node* add_raw(const char* op, std::vector<graph::Endpoint> inputs,
                       AttrMap attrs = {});

  // --- Functions, in random_functions.cpp
  void functional(const Scope& s, Pool& pool, int depth);
  void plain_call(const Scope& s, Pool& pool, int depth);
  void functional_branches(const Scope& s, Pool& pool, int depth);
  void functional_loop(const Scope& s, Pool& pool, int depth);
  void recursion(const Scope& s, Pool& pool, int depth);
  void dead_calls(const Scope& s, Pool& pool, int depth);
  // Inputs of kinds that a function can have.
  std::vector<Value> arguments(const Scope& s, const Pool& pool);
  // A function of arguments like `args`, whose body is some steps; sets what
  // is known of the results. Returns its name.
  std::string random_function(const Scope& s, const std::vector<Value>& args,
                              std::vector<Value>& results, int depth);
  using FunctionBody = std::function<Outputs(const Scope&, Pool args)>;
  std::string define(const Scope& s, const std::vector<Value>& args,
                     const std::vector<Value>& results,
                     const FunctionBody& body, const std::string& name);

  void fetch(const Pool& pool);

  Choices& choices_;
  const RandomOptions options_;
  Case& case_;
  Scope root_;
  int budget_;
  int functions_ = 0;         // defined so far
  bool in_function_ = false;  // what is being built is a function's body
};

}  // namespace tagflow::reference
