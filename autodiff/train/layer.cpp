#include "autodiff/train/layer.h"

#include "graph/builder/ops_activation.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_convolution.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_pooling.h"
#include "graph/builder/ops_product.h"
#include "graph/builder/ops_random.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff::layers {

namespace ops = graph::ops;
using graph::Input;
using graph::Scope;
using graph::VariableScope;

namespace {

// The scopes of a layer's ops and of its variables.
struct Place {
  Scope in;
  VariableScope vars;

  Place(const Scope& s, const VariableScope& all, const std::string& name,
        const char* kind)
      : in(graph::ScopeAccess::construct_scope(s, name.empty() ? kind : name)),
        vars(name.empty() ? all.unique_scope(kind) : all.sub_scope(name)) {}

  void fail(const char* kind, const std::string& why) const {
    in.fail(invalid_argument("[{}] \"{}\": {}", kind,
                             graph::ScopeAccess::name(in), why));
  }
  void check_positive(const char* kind, const char* what, int64_t size) const {
    if (in.ok() && size < 1)
      fail(kind, fmt::format("{} is {}, not positive", what, size));
  }
  Output read(const char* name, const Shape& shape, DataType dtype,
              const graph::Initializer& initializer) const {
    return vars
        .get(in, name, shape, {.dtype = dtype, .initializer = initializer})
        .read(in);
  }
  // The common part of layers with kernels after the product.
  template <class Options>
  Output finish(Output y, int64_t units, const Options& o) const {
    if (o.use_bias && in.ok())
      y = ops::bias_add(
          in, y,
          read("bias", {units}, y.dtype(),
               o.bias_initializer ? o.bias_initializer
                                  : graph::initializers::zeros()));
    return o.activation && in.ok() ? o.activation(in, y) : y;
  }
};

// The size of the last dimension; -1, and a failure, if that is not known.
int64_t channels_of(const Place& place, const char* kind, const Output& x,
                    int least_rank, int most_rank = kMaxRank) {
  const PartialShape shape = x.shape();
  const bool fits = shape.has_rank() && shape.rank() >= least_rank &&
                    shape.rank() <= most_rank &&
                    shape.dim_known(shape.rank() - 1);
  if (fits) return shape.dim(shape.rank() - 1);
  if (place.in.ok())
    place.fail(kind, fmt::format("the input is of shape {}; it must have {}{} "
                                 "dimensions, and the last one be known",
                                 shape.to_string(), least_rank,
                                 most_rank == least_rank ? "" : " or more"));
  return -1;
}

std::vector<int64_t> window(const std::array<int64_t, 2>& sizes) {
  return {1, sizes[0], sizes[1], 1};
}

}  // namespace

Output dense(const Scope& s, const VariableScope& vars, const Output& x,
             const DenseOptions& options) {
  const Place place(s, vars, options.name, "dense");
  const Scope& in = place.in;
  const int64_t units = options.units;
  place.check_positive("dense", "units", units);
  const int64_t inputs = channels_of(place, "dense", x, 2);
  if (!in.ok()) return {};
  const Output kernel = place.read("kernel", {inputs, units}, x.dtype(),
                                   options.kernel_initializer);
  if (x.shape().rank() == 2)
    return place.finish(ops::matmul(in, x, kernel), units, options);
  const Output outer =
      ops::strided_slice(in, ops::shape(in, x), {0}, {-1}, {1});
  const Output rows = ops::reshape(in, x, {int64_t{-1}, inputs});
  const Output y = ops::reshape(
      in, ops::matmul(in, rows, kernel),
      ops::concat(in, {outer, ops::constant(in, {int32_t(units)})}, 0));
  return place.finish(y, units, options);
}

Output conv2d(const Scope& s, const VariableScope& vars, const Output& x,
              const Conv2dOptions& options) {
  const Place place(s, vars, options.name, "conv2d");
  const auto [height, width] = options.kernel_size;
  place.check_positive("conv2d", "filters", options.filters);
  place.check_positive("conv2d", "the kernel's height", height);
  place.check_positive("conv2d", "the kernel's width", width);
  const int64_t channels = channels_of(place, "conv2d", x, 4, 4);
  if (!place.in.ok()) return {};
  const Output kernel =
      place.read("kernel", {height, width, channels, options.filters},
                 x.dtype(), options.kernel_initializer);
  const Output y = ops::conv2d(place.in, x, kernel, window(options.strides),
                               options.padding);
  return place.finish(y, options.filters, options);
}

Output max_pool(const Scope& s, const Output& x, const PoolOptions& options) {
  return ops::max_pool(s, x, window(options.pool_size), window(options.strides),
                       options.padding);
}

Output avg_pool(const Scope& s, const Output& x, const PoolOptions& options) {
  return ops::avg_pool(s, x, window(options.pool_size), window(options.strides),
                       options.padding);
}

Output embedding(const Scope& s, const VariableScope& vars, const Input& ids,
                 const EmbeddingOptions& options) {
  const Place place(s, vars, options.name, "embedding");
  place.check_positive("embedding", "rows", options.rows);
  place.check_positive("embedding", "columns", options.columns);
  const graph::ScopedVariable table = place.vars.get(
      place.in, "embeddings", {options.rows, options.columns},
      {.dtype = options.dtype,
       .initializer = options.initializer
                          ? options.initializer
                          : graph::initializers::random_uniform(-0.05, 0.05)});
  if (!place.in.ok()) return {};
  // Reading single rows needs a handle.
  if (table.parts().size() != 1)
    return ops::gather(place.in, table.read(place.in), ids);
  return place.in.op("ResourceGather", {table.parts()[0].variable.handle, ids},
                     {{"dtype", options.dtype}});
}

Output flatten(const Scope& s, const Output& x) {
  const Scope in = graph::ScopeAccess::construct_scope(s, "flatten");
  const PartialShape shape = x.shape();
  if (in.ok() && shape.has_rank() && shape.rank() == 0)
    in.fail(invalid_argument("[flatten] \"{}\": the input is a scalar",
                             graph::ScopeAccess::name(in)));
  int64_t size = 1;  // 0: not known
  for (int i = 1; shape.has_rank() && i < shape.rank(); ++i)
    size = shape.dim_known(i) ? size * shape.dim(i) : 0;
  if (shape.has_rank() && size > 0)
    return ops::reshape(in, x, {int64_t{-1}, size});
  const Output dims = ops::shape(in, x);
  const Output rest =
      ops::strided_slice(in, dims, {1}, {0}, {1}, {.end_mask = 1});
  return ops::reshape(
      in, x,
      ops::pack(in, {ops::gather(in, dims, 0), ops::reduce_prod(in, rest)}));
}

}  // namespace tagflow::autodiff::layers
