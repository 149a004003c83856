// The oneDNN back end of gemm.h.
#include <oneapi/dnnl/dnnl.h>

#include "devices/cpu/gemm.h"
#include "devices/cpu/single_threaded.h"

namespace tagflow::devices {

void large_float_gemm(int64_t m, int64_t n, int64_t k, Factor<float> a,
                      Factor<float> b, float* c, int64_t c_stride,
                      bool accumulate) {
  const SingleThreaded guard;
  const dnnl_status_t status = dnnl_sgemm(
      a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
      a.stride, b.data, b.stride, accumulate ? 1.0f : 0.0f, c, c_stride);
  // The library refuses only for want of memory for its packed panels.
  if (status != dnnl_success)
    eigen_gemm<float>(m, n, k, a, b, c, c_stride, accumulate);
}

}  // namespace tagflow::devices
