// The walk behind gradients(), of ys and xs that were checked.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autodiff/explain.h"
#include "autodiff/gradient.h"
#include "graph/builder/scope.h"

namespace tagflow::autodiff {

struct Differentiand {
  std::vector<graph::Endpoint> ys;
  std::vector<graph::Endpoint> xs;
  std::vector<graph::Endpoint> stops;  // taken for constants
  // The gradient of ys[i]; asked for where that depends on an x.
  std::function<Gradient(size_t)> grad_of;
  // By x: what its gradient begins with, which is part of it. It is dense. A
  // loop of which the x is a constant adds to it, trip by trip. May be short.
  std::vector<Gradient> sums = {};
  size_t num_dense = 0;  // the gradients of the first so many xs are dense
  bool zeros_if_unconnected = false;
  std::map<std::string, std::string> save = {};  // as in GradientOptions
  std::vector<KeptValue>* kept = nullptr;
  bool check_liveness = false;  // as in GradientOptions
  // The gradients of ys may be live where they please.
  bool has_own_grads = false;
};

// The gradients by each x, made in the scope. Lowers the calls between xs and
// ys. Errors are those of gradients(), some of them the scope's.
Result<std::vector<Gradient>> differentiate(const graph::Scope& scope,
                                            const Differentiand& what);

}  // namespace tagflow::autodiff
