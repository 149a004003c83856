// Shared by tests of reverse and of forward mode: programs of scalars whose
// derivatives are known in closed form.
#pragma once

#include "graph/builder/builder.h"
#include "graph/graph.h"

namespace tagflow::autodiff::testing {

// A graph, and what programs of scalars begin with.
struct ScalarProgram {
  graph::Graph graph;
  graph::Scope s{graph};

  // A constant of that name.
  graph::Output number(double value, const char* name) {
    return graph::ops::constant(s.named(name), value);
  }
  // A bool to feed as "flag".
  graph::Output flag() {
    return graph::ops::placeholder(s.named("flag"), DataType::kBool,
                                   PartialShape::scalar());
  }
};

// Whether the first variable of a loop is below n.
inline graph::PredicateFn less_than(const graph::Input& n) {
  return [n](const graph::Scope& in, const graph::Outputs& v) {
    return graph::ops::less(in, v[0], n);
  };
}

// x * w^n by a loop.
inline graph::Output power(const graph::Scope& s, const graph::Output& x,
                           const graph::Output& w, const graph::Input& n,
                           int64_t window = 10) {
  namespace ops = graph::ops;
  return graph::while_loop(
      s, less_than(n),
      [&](const graph::Scope& in, const graph::Outputs& v) -> graph::Outputs {
        return {ops::add(in, v[0], 1), ops::mul(in, v[1], w)};
      },
      {0, x}, {.parallel_iterations = window})[1];
}

// x * w^6 by loops of 0, 1, 2 and 3 trips in a loop of 4.
inline graph::Output nested_power(const graph::Scope& s, const graph::Output& x,
                                  const graph::Output& w) {
  namespace ops = graph::ops;
  return graph::while_loop(
      s, less_than(4),
      [&](const graph::Scope& in, const graph::Outputs& v) -> graph::Outputs {
        return {ops::add(in, v[0], 1), power(in, v[1], w, v[0])};
      },
      {0, x})[1];
}

// x * w^3 by a loop if the flag is true, otherwise x.
inline graph::Output power_where(const graph::Scope& s,
                                 const graph::Output& flag,
                                 const graph::Output& x,
                                 const graph::Output& w) {
  return graph::cond(
      s, flag,
      [&](const graph::Scope& in) -> graph::Outputs {
        return power(in, x, w, 3);
      },
      [&](const graph::Scope&) -> graph::Outputs { return x; })[0];
}

// 27 x^2 by a loop whose odd trips square and whose even ones triple: x, 3x,
// 9x^2, 27x^2.
inline graph::Output tripled_and_squared(const graph::Scope& s,
                                         const graph::Output& x) {
  namespace ops = graph::ops;
  return graph::while_loop(
      s, less_than(3),
      [&](const graph::Scope& in, const graph::Outputs& v) -> graph::Outputs {
        const graph::Output odd =
            ops::equal(in, ops::floor_mod(in, v[0], 2), 1);
        const graph::Output next = graph::cond(
            in, odd,
            [&](const graph::Scope& b) -> graph::Outputs {
              return ops::square(b, v[1]);
            },
            [&](const graph::Scope& b) -> graph::Outputs {
              return ops::mul(b, v[1], 3);
            })[0];
        return {ops::add(in, v[0], 1), next};
      },
      {0, x})[1];
}

// w * 2w * 4w by a loop that doubles the variable after each read.
inline graph::Output product_of_reads(const graph::Scope& s,
                                      const graph::ops::Variable& w) {
  namespace ops = graph::ops;
  return graph::while_loop(
      s, less_than(3),
      [&](const graph::Scope& in, const graph::Outputs& v) -> graph::Outputs {
        const graph::Output now = ops::read(in, w);
        const graph::Output next = ops::mul(in, v[1], now);
        const graph::Output assigned = ops::assign(in, w, ops::mul(in, now, 2));
        const graph::Scope after = in.with_control_dependencies({assigned});
        return {ops::add(after, v[0], 1), ops::identity(after, next)};
      },
      {0, ops::constant(s, 1.0)}, {.parallel_iterations = 1})[1];
}

// x^3 by a loop that reads one element of an array in each trip.
inline graph::Output cube_by_array(const graph::Scope& s,
                                   const graph::Output& x, int64_t window) {
  namespace ops = graph::ops;
  graph::TensorArray array(
      s, 1, DataType::kDouble,
      {.element_shape = PartialShape::scalar(), .clear_after_read = false});
  array = array.write(s, 0, x);
  return graph::while_loop(
      s, less_than(3),
      [&](const graph::Scope& in, const graph::Outputs& v) -> graph::Outputs {
        return {ops::add(in, v[0], 1), ops::mul(in, v[1], array.read(in, 0))};
      },
      {0, ops::constant(s, 1.0)}, {.parallel_iterations = window})[1];
}

// What a loop has made, and a tensor from inside of it.
struct Doubled {
  graph::Output last;
  graph::Output inside;
};

// x, doubled by a loop until it is 10 or more; "while/inside" doubles it.
inline Doubled doubled(const graph::Scope& s, const graph::Output& x) {
  namespace ops = graph::ops;
  Doubled made;
  made.last = graph::while_loop(
      s, less_than(10.0),
      [&](const graph::Scope& in, const graph::Outputs& v) -> graph::Outputs {
        return made.inside = ops::mul(in.named("inside"), v[0], 2.0);
      },
      {x})[0];
  return made;
}

}  // namespace tagflow::autodiff::testing
