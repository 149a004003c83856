// Initial values of variables: the functions that VariableScope::get() calls to
// make them.
//
//   vars.get(s, "kernel", {128, 64}, {.initializer = glorot_uniform()});
//
// Random ones depend on the seeds (Seeds in ops_random.h). If both are 0, the
// numbers depend on the session's seed and the name of the op, so they differ
// between variables; otherwise variables of one shape, or equal parts of one,
// get the same numbers, as in TensorFlow.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_random.h"
#include "graph/builder/scope.h"

namespace tagflow::graph {

// The target of an initial value: a variable, or one part of it.
struct InitialPart {
  DataType dtype = DataType::kFloat;
  Shape shape;                       // of the part
  Shape whole;                       // of the variable
  std::vector<int64_t> offset = {};  // of the part in the whole
};

// Adds the ops that compute a value of that type and shape. They are outside of
// all loops and branches, wherever the variable is used. On an error the scope
// fails.
using Initializer = std::function<Output(const Scope&, const InitialPart&)>;

namespace initializers {

// For any type that has zeros; strings are empty.
Initializer zeros();
// For numbers and bools.
Initializer ones();
// A number for all elements, or a tensor of the variable's shape, of which a
// part gets its slice.
Initializer constant(Input value);

// For floating-point types, as all below.
Initializer random_uniform(double low = 0, double high = 1,
                           ops::Seeds seeds = {});
Initializer random_normal(double mean = 0, double stddev = 1,
                          ops::Seeds seeds = {});
// Omits values more than two standard deviations from the mean.
Initializer truncated_normal(double mean = 0, double stddev = 1,
                             ops::Seeds seeds = {});

// Random numbers around 0 with the variance scale / fan, so that sums in a
// layer keep their magnitude. `fan` is the number of inputs or outputs of a
// unit, or their mean, of the whole variable. Matrices have rows for inputs,
// filters are [..., in, out].
struct VarianceScaling {
  enum class Fan : uint8_t { kIn, kOut, kAverage };
  enum class Draw : uint8_t { kTruncatedNormal, kNormal, kUniform };

  double scale = 1;  // positive
  Fan fan = Fan::kIn;
  Draw distribution = Draw::kTruncatedNormal;
  ops::Seeds seeds = {};
};
Initializer variance_scaling(VarianceScaling options = {});
Initializer glorot_uniform(ops::Seeds seeds = {});
Initializer glorot_normal(ops::Seeds seeds = {});
Initializer he_uniform(ops::Seeds seeds = {});
Initializer he_normal(ops::Seeds seeds = {});

// A matrix whose rows or columns, whichever are fewer, are orthogonal and of
// length `gain`; with more than two dimensions, all but the last are flattened.
// It is computed when the graph is built, from the seeds (0, 0 too) and the
// variable's shape, and is a constant of the graph. Not for partitioned
// variables.
Initializer orthogonal(double gain = 1, ops::Seeds seeds = {});

}  // namespace initializers

}  // namespace tagflow::graph
