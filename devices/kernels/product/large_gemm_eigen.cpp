// The back end of gemm.h for builds without oneDNN.
#include "devices/kernels/product/gemm.h"

namespace tagflow::devices {

void large_float_gemm(int64_t m, int64_t n, int64_t k, Factor<float> a,
                      Factor<float> b, float* c, int64_t c_stride,
                      bool accumulate) {
  eigen_gemm<float>(m, n, k, a, b, c, c_stride, accumulate);
}

}  // namespace tagflow::devices
