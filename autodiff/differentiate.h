// The implementation of gradients(), for ys and xs that were checked.
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
  // The gradient of ys[i]; ones if it is invalid. Called only if ys[i] depends
  // on an x.
  std::function<Gradient(size_t)> grad_of;
  // By x: a dense initial value of its gradient, included in the result. A loop
  // that has the x as a constant adds to it trip by trip. May be shorter than
  // xs.
  std::vector<Gradient> sums = {};
  size_t num_dense = 0;  // the gradients of this many first xs are dense
  bool zeros_if_unconnected = false;
  std::map<std::string, std::string> save = {};  // as in GradientOptions
  std::vector<KeptValue>* kept = nullptr;
  bool check_liveness = false;  // as in GradientOptions
  // Whether the tensors are computed again in a loop, of which the graph has no
  // frame.
  bool is_in_loop = false;
  // Whether the gradients of ys may be live in other cases than the ys.
  bool has_own_grads = false;
};

// Makes the gradients by each x in the scope. Lowers the calls between xs and
// ys. Errors are those of gradients(); some of them are kept by the scope.
Result<std::vector<Gradient>> differentiate(const graph::Scope& scope,
                                            const Differentiand& what);

}  // namespace tagflow::autodiff
