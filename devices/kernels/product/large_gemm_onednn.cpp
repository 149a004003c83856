// The oneDNN back end of gemm.h.
//
// Note [Transposed factors]
// The library's sgemm reads matrices in place, which is the fastest for most
// products. It reads a transposed second factor with steps of a whole row: a
// product of 32 x 512 by the transpose of 64 x 512 takes three times as long as
// without. The library's matmul primitive first reorders that factor into
// blocks. A primitive is made for one shape, which takes some tenths of a
// millisecond: so they are cached. A primitive cannot leave gaps between the
// rows of its result: if the result has gaps, it writes to temporary memory.
#include <algorithm>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <shared_mutex>
#include <string_view>
#include <vector>

#include "devices/kernels/onednn.h"
#include "devices/kernels/product/gemm.h"
#include "devices/kernels/scratch.h"

namespace tagflow::devices {
namespace {

struct ProductShape {
  int64_t m, n, k;
  int64_t a_stride, b_stride;
  bool a_transposed, b_transposed;

  bool operator==(const ProductShape&) const = default;
};

using Desc = dnnl::memory::desc;

Desc described(int64_t rows, int64_t columns, int64_t stride,
               bool is_transposed) {
  using Dims = dnnl::memory::dims;
  return Desc({rows, columns}, dnnl::memory::data_type::f32,
              is_transposed ? Dims{1, stride} : Dims{stride, 1});
}

// A primitive for one shape; none if the library has nothing better than sgemm.
class MatMul {
 public:
  // Throws dnnl::error and std::bad_alloc.
  explicit MatMul(const ProductShape& s)
      : a_(described(s.m, s.k, s.a_stride, s.a_transposed)),
        b_(described(s.k, s.n, s.b_stride, s.b_transposed)),
        c_(described(s.m, s.n, s.n, false)) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a_, b_, c_),
                                              attr, onednn_engine());
    // Only the kernels on blocks ("brgemm") are faster than sgemm.
    if (!std::string_view(chosen.impl_info_str()).starts_with("brg")) return;
    scratchpad_ = chosen.scratchpad_desc();
    primitive_ = dnnl::matmul(chosen);
  }

  bool exists() const { return bool(primitive_); }
  // The additional memory of run().
  size_t scratch_bytes() const { return scratchpad_.get_size(); }
  // c = a b. Throws as above. REQUIRES: exists().
  void run(const float* a, const float* b, float* c, void* scratch) const {
    const auto memory = [](const Desc& desc, const void* elements) {
      return dnnl::memory(desc, onednn_engine(), const_cast<void*>(elements));
    };
    dnnl::stream stream(onednn_engine());
    primitive_.execute(stream,
                       {{DNNL_ARG_SRC, memory(a_, a)},
                        {DNNL_ARG_WEIGHTS, memory(b_, b)},
                        {DNNL_ARG_DST, memory(c_, c)},
                        {DNNL_ARG_SCRATCHPAD, memory(scratchpad_, scratch)}});
  }

 private:
  Desc a_, b_, c_, scratchpad_;
  dnnl::matmul primitive_;
};

// The process's primitives. Thread-safe.
class MatMuls {
 public:
  // Throws as MatMul() does.
  std::shared_ptr<const MatMul> of(const ProductShape& shape) {
    {
      const std::shared_lock lock(mutex_);
      for (const auto& [known, product] : kept_)
        if (known == shape) return product;
    }
    auto made = std::make_shared<const MatMul>(shape);
    const std::lock_guard lock(mutex_);
    if (kept_.size() == kMost) kept_.erase(kept_.begin());
    kept_.emplace_back(shape, made);
    return made;
  }

 private:
  // More than the products of one model; each lookup scans them all.
  static constexpr size_t kMost = 64;

  std::shared_mutex mutex_;
  std::vector<std::pair<ProductShape, std::shared_ptr<const MatMul>>> kept_;
};

// Whether reordering the second factor into blocks pays.
bool gains_by_blocks(int64_t m, int64_t k, const Factor<float>& b) {
  return b.transposed && m >= 16 && k >= 256;
}

// c = a b, if that is faster by blocks than by sgemm; false if it is not, or
// fails: then c may have any values.
bool multiply_by_blocks(const ProductShape& shape, const float* a,
                        const float* b, float* c, int64_t c_stride) try {
  static MatMuls products;
  const std::shared_ptr<const MatMul> product = products.of(shape);
  if (!product->exists()) return false;
  const bool is_dense = c_stride == shape.n;
  const size_t result_bytes =
      is_dense ? 0 : Scratch::rounded(size_t(shape.m * shape.n) * sizeof *c);
  const Scratch scratch(result_bytes + product->scratch_bytes());
  auto* const to = is_dense ? c : static_cast<float*>(scratch.at(0));
  product->run(a, b, to, scratch.at(result_bytes));
  for (int64_t i = 0; !is_dense && i < shape.m; ++i)
    std::copy_n(to + i * shape.n, shape.n, c + i * c_stride);
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace

void large_float_gemm(int64_t m, int64_t n, int64_t k, Factor<float> a,
                      Factor<float> b, float* c, int64_t c_stride,
                      bool accumulate) {
  const SingleThreaded guard;
  if (!accumulate && gains_by_blocks(m, k, b)) {
    const ProductShape shape{
        m, n, k, a.stride, b.stride, a.transposed, b.transposed};
    if (multiply_by_blocks(shape, a.data, b.data, c, c_stride)) return;
  }
  const dnnl_status_t status = dnnl_sgemm(
      a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
      a.stride, b.data, b.stride, accumulate ? 1.0f : 0.0f, c, c_stride);
  // The library fails only if it has no memory for its packed panels.
  if (status != dnnl_success)
    eigen_gemm<float>(m, n, k, a, b, c, c_stride, accumulate);
}

}  // namespace tagflow::devices
