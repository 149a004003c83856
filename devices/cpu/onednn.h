// How oneDNN is used: on one thread.
#pragma once

#include <omp.h>

#include <dnnl.hpp>

namespace tagflow::devices {

// What makes and runs all primitives.
inline const dnnl::engine& onednn_engine() {
  static const dnnl::engine the_engine(dnnl::engine::kind::cpu, 0);
  return the_engine;
}

// While this lives, what the calling thread asks of OpenMP runs on it alone:
// kernels shard their work themselves. Afterwards the thread, which may be the
// user's, has the number of threads again that it had before.
class SingleThreaded {
 public:
  SingleThreaded() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~SingleThreaded() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  const int before_;
};

}  // namespace tagflow::devices
