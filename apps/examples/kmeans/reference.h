// The same algorithm in plain Eigen, to check the graph's result.
#pragma once

#include "apps/examples/kmeans/kmeans.h"

namespace tagflow::kmeans {

Solution solve_by_eigen(const Problem& problem);

// Checks that two solutions of the problem are equal up to rounding: every
// centroid within 1e-3 of its length, and every assignment equal, except where
// a point has the same distance to both centroids (to 1e-3). InvalidArgument
// names the difference.
Status check_equal(const Problem& problem, const Solution& solution,
                   const Solution& reference);

}  // namespace tagflow::kmeans
