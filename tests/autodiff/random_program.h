// Random smooth functions with loops and conditionals, nested in one another,
// and recursions.
#pragma once

#include <random>
#include <string>

#include "autodiff/recompute.h"
#include "graph/builder/builder.h"
#include "graph/builder/function.h"

namespace tagflow::autodiff::testing {

// Builds one program from a seed: the same ops for the same seed, whatever the
// types of what it gets. Loops make up to three trips, by numbers that depend
// on the iterations around them; conditionals go by such numbers, too, and some
// by values.
class RandomProgram {
 public:
  // If it `has_recursions`, some of it are recursive functions. If it
  // `recomputes`, some of it is in recomputed blocks, and some loops keep
  // little of their values for gradients.
  explicit RandomProgram(uint32_t seed, bool has_recursions = false,
                         bool recomputes = false)
      : random_(seed),
        plans_(seed),
        has_recursions_(has_recursions),
        recomputes_(recomputes) {}

  // Some outputs that depend on some of `x`, doubles of one shape.
  graph::Outputs build(const graph::Scope& s, const graph::Outputs& x) {
    const graph::Output number = graph::ops::constant(s, int32_t{2});
    std::vector<graph::Output> values(x.begin(), x.end());
    for (int i = 0; i < 3; ++i)
      values.push_back(value(s, values, number, kDepth));
    return {values[values.size() - 1], values[values.size() - 2]};
  }

 private:
  static constexpr int kDepth = 3;
  using Values = std::vector<graph::Output>;

  int pick(int n) { return int(random_() % uint32_t(n)); }
  graph::Output any(const Values& values) {
    return values[size_t(pick(int(values.size())))];
  }

  int plan(int n) { return recomputes_ ? int(plans_() % uint32_t(n)) : 0; }

  graph::Output value(const graph::Scope& s, const Values& values,
                      const graph::Output& number, int depth) {
    if (plan(4) != 3) return plain_value(s, values, number, depth);
    return recompute(
        s,
        [&](const graph::Scope& in, const graph::Outputs&) -> graph::Outputs {
          return plain_value(in, values, number, depth);
        },
        {})[0];
  }

  graph::Save save() {
    switch (plan(4)) {
      case 1:
        return graph::Save::every(1);
      case 2:
        return graph::Save::every(2);
      case 3:
        return graph::Save::log();
      default:
        return {};
    }
  }

  graph::Output plain_value(const graph::Scope& s, const Values& values,
                            const graph::Output& number, int depth) {
    const int kinds = has_recursions_ ? 12 : 8;
    const int kind = pick(depth > 0 ? kinds : 4);
    switch (kind) {
      case 0:
        return graph::ops::mul(s, any(values), any(values));
      case 1:
        return graph::ops::sub(s, any(values),
                               graph::ops::mul(s, any(values), 0.5));
      case 2:
        return graph::ops::tanh(s, graph::ops::add(s, any(values), 0.25));
      case 3:
        return graph::ops::sin(s, any(values));
      case 4:
      case 5:
        return conditional(s, values, number, depth);
      case 6:
      case 7:
        return loop(s, values, number, depth);
      default:
        return recursion(s, values, number, depth);
    }
  }

  // f(n, a, b) of two results, up to three calls deep, with one call or two in
  // its body. A body has no functions of its own.
  graph::Output recursion(const graph::Scope& s, const Values& values,
                          const graph::Output& number, int depth) {
    namespace ops = graph::ops;
    const std::string name = "f" + std::to_string(functions_++);
    const graph::ArgumentSpec n{"n", DataType::kInt32, PartialShape::scalar()};
    const graph::ResultSpec result{DataType::kDouble, values[0].shape()};
    has_recursions_ = false;
    graph::define_function(
        s, {.name = name,
            .args = {n,
                     {"a", DataType::kDouble, result.shape},
                     {"b", DataType::kDouble, result.shape}},
            .results = {result, result},
            .body = [&](const graph::Scope& in, const graph::Outputs& args) {
              return recursive_body(in, name, args, depth);
            }});
    has_recursions_ = true;
    const graph::Output trips = ops::floor_mod(s, number, 3);
    return graph::call(s, name,
                       {trips, any(values), any(values)})[size_t(pick(2))];
  }

  graph::Outputs recursive_body(const graph::Scope& s, const std::string& name,
                                const graph::Outputs& args, int depth) {
    namespace ops = graph::ops;
    const Values given{args[1], args[2]};
    return graph::cond(
        s, ops::greater(s, args[0], 0),
        [&](const graph::Scope& in) -> graph::Outputs {
          Values inside = given;
          inside.push_back(value(in, inside, args[0], depth - 1));
          for (int calls = 1 + pick(2); calls > 0; --calls) {
            const graph::Outputs results = graph::call(
                in, name, {ops::sub(in, args[0], 1), any(inside), any(inside)});
            inside.insert(inside.end(), results.begin(), results.end());
          }
          return {ops::tanh(in, ops::add(in, any(inside), inside.back())),
                  value(in, inside, args[0], depth - 1)};
        },
        [&](const graph::Scope& in) -> graph::Outputs {
          return {value(in, given, args[0], depth - 1),
                  pick(2) == 0 ? args[1] : ops::sin(in, args[2])};
        });
  }

  graph::Output conditional(const graph::Scope& s, const Values& values,
                            const graph::Output& number, int depth) {
    namespace ops = graph::ops;
    const graph::Output by_number =
        ops::equal(s, ops::floor_mod(s, number, 2), pick(2));
    // Far from every value that the test perturbs it to.
    const graph::Output test =
        pick(3) != 0 ? by_number
                     : graph::Output(ops::less(
                           s, ops::reduce_sum(s, any(values)), 1234.5));
    const bool one_is_plain = pick(2) == 0;
    return graph::cond(
        s, test,
        [&](const graph::Scope& in) -> graph::Outputs {
          return value(in, values, number, depth - 1);
        },
        [&](const graph::Scope& in) -> graph::Outputs {
          if (one_is_plain) return any(values);
          return value(in, values, number, depth - 1);
        })[0];
  }

  graph::Output loop(const graph::Scope& s, const Values& values,
                     const graph::Output& number, int depth) {
    namespace ops = graph::ops;
    const int trips = pick(4);
    const bool by_number = pick(2) == 0;
    const graph::Output limit =
        by_number
            ? graph::Output(ops::floor_mod(s, ops::add(s, number, trips), 4))
            : ops::constant(s, int32_t(trips));
    const graph::Output a = any(values), b = any(values);
    const int64_t window = 1 + pick(3) * 5;
    return graph::while_loop(
        s,
        [&](const graph::Scope& in, const graph::Outputs& v) {
          return ops::less(in, v[0], limit);
        },
        [&](const graph::Scope& in, const graph::Outputs& v) -> graph::Outputs {
          Values inside = values;
          inside.push_back(v[1]);
          inside.push_back(v[2]);
          const graph::Output first = value(in, inside, v[0], depth - 1);
          inside.push_back(first);
          const graph::Output second =
              pick(3) == 0 ? v[1] : value(in, inside, v[0], depth - 1);
          return {ops::add(in, v[0], 1),
                  ops::tanh(in, ops::add(in, first, v[1])), second};
        },
        {0, a, b},
        {.parallel_iterations = window, .save = save()})[size_t(1 + pick(2))];
  }

  std::mt19937 random_, plans_;
  bool has_recursions_;
  const bool recomputes_;
  int functions_ = 0;
};

}  // namespace tagflow::autodiff::testing
