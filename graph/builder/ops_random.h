// Op functions: random numbers.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

struct Seeds {
  int64_t seed = 0;
  int64_t seed2 = 0;
};
inline Output random_uniform(const Scope& s, const Input& shape, DataType dtype,
                             Seeds a = {}) {
  return s.op("RandomUniform", {shape},
              {{"dtype", dtype}, {"seed", a.seed}, {"seed2", a.seed2}});
}
inline Output random_normal(const Scope& s, const Input& shape, DataType dtype,
                            Seeds a = {}) {
  return s.op("RandomStandardNormal", {shape},
              {{"dtype", dtype}, {"seed", a.seed}, {"seed2", a.seed2}});
}

}  // namespace tagflow::graph::ops
