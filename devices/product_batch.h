// ProductBatch: what a batch of matrix products multiplies.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <utility>

namespace tagflow::devices {

// How a factor's last two dimensions are read.
struct FactorForm {
  bool transposed = false;
  bool conjugated = false;  // of complex types; no effect for others
};

// A batch of products. Matrices of a tensor follow one another; the sizes are
// those after transposition. The batch has its own dimensions; along each a
// factor moves on to its next matrices or repeats.
struct ProductBatch {
  struct Dim {
    int64_t size;
    int64_t a_step, b_step;  // in matrices; 0 if the factor repeats
  };

  int64_t m = 0, n = 0, k = 0;
  FactorForm a_form, b_form;
  boost::container::small_vector<Dim, 4> dims;  // outermost first

  // The number of products. REQUIRES: it does not overflow.
  int64_t count() const;
  // The matrices of a and b that are multiplied in product i.
  std::pair<int64_t, int64_t> factors(int64_t i) const;
};

}  // namespace tagflow::devices
