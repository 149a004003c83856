// GRUBlockCell and GRUBlockCellGrad.
#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/kernels/elementwise/vector_math.h"
#include "devices/kernels/recurrent/args.h"

namespace tagflow::devices {

namespace {

struct GruInputs {
  int64_t batch = 0, inputs = 0, cells = 0;
  const float *x, *h_prev, *w_ru, *w_c, *b_ru, *b_c;
};

Result<GruInputs> gru_inputs(KernelContext& context, FloatTensors& floats) {
  GruInputs in;
  TAGFLOW_ASSIGN(in.x, floats.input(0, "x", {-1, -1}));
  in.batch = context.input(0).dim(0);
  in.inputs = context.input(0).dim(1);
  TAGFLOW_ASSIGN(in.h_prev, floats.input(1, "h_prev", {in.batch, -1}));
  const int64_t cells = in.cells = context.input(1).dim(1);
  int64_t joined = 0, both = 0;
  if (__builtin_add_overflow(in.inputs, cells, &joined) ||
      __builtin_add_overflow(cells, cells, &both))
    return context.fail("{} inputs and {} cells are too many", in.inputs,
                        cells);
  TAGFLOW_ASSIGN(in.w_ru, floats.input(2, "w_ru", {joined, both}));
  TAGFLOW_ASSIGN(in.w_c, floats.input(3, "w_c", {joined, cells}));
  TAGFLOW_ASSIGN(in.b_ru, floats.input(4, "b_ru", {both}));
  TAGFLOW_ASSIGN(in.b_c, floats.input(5, "b_c", {cells}));
  return in;
}

double gru_cost(const KernelContext& context) {
  const Tensor& x = context.input(0);
  const Tensor& w = context.input(2);
  if (x.rank() != 2 || w.rank() != 2) return 0;
  return 500 + 1.5 * gemm_cost(DataType::kFloat, x.dim(0), w.dim(1), w.dim(0)) +
         3 * double(x.dim(0)) * double(w.dim(1));
}

class GruKernel : public Kernel {
 public:
  explicit GruKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    FloatTensors floats(context);
    TAGFLOW_ASSIGN(const GruInputs in, gru_inputs(context, floats));
    const int64_t cells = in.cells, both = 2 * cells;
    const Shape state{in.batch, cells};
    float *r, *u, *c, *h;
    TAGFLOW_ASSIGN(r, floats.output(0, state));
    TAGFLOW_ASSIGN(u, floats.output(1, state));
    TAGFLOW_ASSIGN(c, floats.output(2, state));
    TAGFLOW_ASSIGN(h, floats.output(3, state));
    TAGFLOW_ASSIGN(float* gates, floats.temp(Shape{in.batch, both}));
    TAGFLOW_ASSIGN(float* reset, floats.temp(state));
    if (cells == 0) return {};
    for (int64_t row = 0; row < in.batch; ++row) {
      std::copy_n(in.b_ru, both, gates + row * both);
      std::copy_n(in.b_c, cells, c + row * cells);
    }
    add_product(context, in.batch, both, in.inputs, {in.x, in.inputs},
                {in.w_ru, both}, gates);
    add_product(context, in.batch, both, cells, {in.h_prev, cells},
                {in.w_ru + in.inputs * both, both}, gates);
    for (int64_t row = 0; row < in.batch; ++row)
      for (int64_t j = 0, at = row * cells; j < cells; ++j, ++at) {
        r[at] = vector_math::sigmoid(gates[row * both + j]);
        u[at] = vector_math::sigmoid(gates[row * both + cells + j]);
        reset[at] = in.h_prev[at] * r[at];
      }
    add_product(context, in.batch, cells, in.inputs, {in.x, in.inputs},
                {in.w_c, cells}, c);
    add_product(context, in.batch, cells, cells, {reset, cells},
                {in.w_c + in.inputs * cells, cells}, c);
    for (int64_t at = 0; at < in.batch * cells; ++at) {
      c[at] = vector_math::tanh(c[at]);
      h[at] = u[at] * in.h_prev[at] + (1 - u[at]) * c[at];
    }
    return {};
  }

  double cost(const KernelContext& context) const override {
    return gru_cost(context);
  }
};

class GruGradKernel : public Kernel {
 public:
  explicit GruGradKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    FloatTensors floats(context);
    TAGFLOW_ASSIGN(const GruInputs in, gru_inputs(context, floats));
    const int64_t cells = in.cells, both = 2 * cells;
    const std::initializer_list<int64_t> dims = {in.batch, cells};
    const Shape state{in.batch, cells};
    const float *r, *u, *c, *grad;
    TAGFLOW_ASSIGN(r, floats.input(6, "r", dims));
    TAGFLOW_ASSIGN(u, floats.input(7, "u", dims));
    TAGFLOW_ASSIGN(c, floats.input(8, "c", dims));
    TAGFLOW_ASSIGN(grad, floats.input(9, "d_h", dims));
    float *of_x, *of_h, *of_c, *of_ru;
    TAGFLOW_ASSIGN(of_x, floats.output(0, Shape{in.batch, in.inputs}));
    TAGFLOW_ASSIGN(of_h, floats.output(1, state));
    TAGFLOW_ASSIGN(of_c, floats.output(2, state));
    TAGFLOW_ASSIGN(of_ru, floats.output(3, Shape{in.batch, both}));
    TAGFLOW_ASSIGN(float* of_reset, floats.temp(state));
    if (cells == 0) return {};
    const int64_t count = in.batch * cells;
    std::fill_n(of_reset, count, 0.0f);
    for (int64_t at = 0; at < count; ++at)
      of_c[at] = grad[at] * (1 - u[at]) * (1 - c[at] * c[at]);
    add_product(context, in.batch, cells, cells, {of_c, cells},
                {in.w_c + in.inputs * cells, cells, true}, of_reset);
    for (int64_t row = 0; row < in.batch; ++row)
      for (int64_t j = 0, at = row * cells; j < cells; ++j, ++at) {
        const float h = in.h_prev[at];
        of_ru[row * both + j] = of_reset[at] * h * r[at] * (1 - r[at]);
        of_ru[row * both + cells + j] =
            grad[at] * (h - c[at]) * u[at] * (1 - u[at]);
        of_h[at] = of_reset[at] * r[at] + grad[at] * u[at];
      }
    add_product(context, in.batch, in.inputs, cells, {of_c, cells},
                {in.w_c, cells, true}, of_x);
    add_product(context, in.batch, in.inputs, both, {of_ru, both},
                {in.w_ru, both, true}, of_x);
    add_product(context, in.batch, cells, both, {of_ru, both},
                {in.w_ru + in.inputs * both, both, true}, of_h);
    return {};
  }

  double cost(const KernelContext& context) const override {
    return gru_cost(context);
  }
};

}  // namespace

void register_recurrent_gru_kernels(KernelRegistry& registry) {
  registry.add<GruKernel>("GRUBlockCell", {{"T", {DataType::kFloat}}});
  registry.add<GruGradKernel>("GRUBlockCellGrad", {{"T", {DataType::kFloat}}});
}

}  // namespace tagflow::devices
