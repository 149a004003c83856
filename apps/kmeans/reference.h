// The same algorithm in plain Eigen, to check the graph's result.
#pragma once

#include "apps/kmeans/kmeans.h"

namespace tagflow::kmeans {

Solution solve_by_eigen(const Problem& problem);

// Whether two solutions of the problem are the same, up to rounding: every
// centroid within 1e-3 of its length, and every assignment equal but where a
// point is as far from both centroids (to 1e-3). InvalidArgument says what
// differs.
Status check_equal(const Problem& problem, const Solution& solution,
                   const Solution& reference);

}  // namespace tagflow::kmeans
