// LSTMBlockCellGrad, BlockLSTMGrad, BlockLSTMGradV2.
#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/kernels/recurrent/lstm.h"

namespace tagflow::devices {

namespace {

// The results of the forward pass, and the gradients of the cells and the
// outputs.
struct Given {
  const float *i, *cs, *f, *o, *ci, *co, *h;
  const float *cs_grad, *h_grad;
};

Result<Given> given_inputs(const LstmForm& form, const LstmInputs& in,
                           FloatTensors& floats) {
  Given given{};
  const auto read = [&](int i, const char* name, const float*& to) {
    auto elements = form.has_time
                        ? floats.input(i, name, {in.steps, in.batch, in.cells})
                        : floats.input(i, name, {in.batch, in.cells});
    if (elements.ok()) to = *elements;
    return std::move(elements).status();
  };
  const std::pair<const char*, const float**> all[] = {
      {"i", &given.i}, {"cs", &given.cs},           {"f", &given.f},
      {"o", &given.o}, {"ci", &given.ci},           {"co", &given.co},
      {"h", &given.h}, {"cs_grad", &given.cs_grad}, {"h_grad", &given.h_grad}};
  int next = form.first_input() + 8;
  for (const auto& [name, to] : all) {
    // For one step the outputs are not needed, and not given.
    if (!form.has_time && to == &given.h) continue;
    TAGFLOW_RETURN_IF_ERROR(read(next++, name, *to));
  }
  return given;
}

// The gradients of one step, for one row of the batch. As in TensorFlow, the
// gradient ignores the clipping of cells.
struct GradRow {
  float* gates;  // [4 * cells]
  float* cs;     // in: of this step's cells; out: of the previous ones
  const float* h;
};

class LstmGrad {
 public:
  LstmGrad(KernelContext& context, const LstmForm& form, const LstmInputs& in,
           const Given& given)
      : context_(context), form_(form), in_(in), given_(given) {}

  // Cells before step `step`, all rows.
  const float* cells_before(int64_t step) const {
    return step == 0 ? in_.cs_prev
                     : given_.cs + (step - 1) * in_.batch * in_.cells;
  }

  // Computes rows [begin, end) of the batch, from the last step to the first.
  // `gates` is [length, batch, 4 * cells]; `cs` and `h` are [batch, cells].
  // They begin as 0 and end as the gradients of the values before the first
  // step.
  void run(float* gates, float* cs, float* h, int64_t begin,
           int64_t end) const {
    const int64_t cells = in_.cells, width = 4 * cells;
    for (int64_t step = in_.length; step-- > 0;) {
      context_.check_cancelled();
      const int64_t first = step * in_.batch;
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t j = 0; j < cells; ++j) {
          cs[row * cells + j] += given_.cs_grad[(first + row) * cells + j];
          h[row * cells + j] += given_.h_grad[(first + row) * cells + j];
        }
        step_back(
            (first + row) * cells, cells_before(step) + row * cells,
            {gates + (first + row) * width, cs + row * cells, h + row * cells});
      }
      gemm<float>(end - begin, cells, width,
                  {gates + (first + begin) * width, width},
                  {in_.recurrent_w(), width, true}, h + begin * cells, cells);
    }
  }

  // Adds the sums over all steps and rows; `to` are those of wci, wcf and wco.
  void add_peepholes(const float* gates, float* const to[3]) const {
    const int64_t cells = in_.cells;
    for (int64_t step = 0; step < in_.length; ++step)
      for (int64_t row = 0; row < in_.batch; ++row) {
        context_.check_cancelled();
        const int64_t at = step * in_.batch + row;
        const float* before = cells_before(step) + row * cells;
        const float* after = given_.cs + at * cells;
        const float* grad = gates + at * 4 * cells;
        for (int64_t j = 0; j < cells; ++j) {
          to[0][j] += grad[form_.order.input * cells + j] * before[j];
          to[1][j] += grad[form_.order.forget * cells + j] * before[j];
          to[2][j] += grad[form_.order.output * cells + j] * after[j];
        }
      }
  }

 private:
  void step_back(int64_t at, const float* cs_prev, const GradRow& grad) const {
    const int64_t cells = in_.cells;
    const bool peeps = form_.has_peephole;
    float* of_i = grad.gates + form_.order.input * cells;
    float* of_c = grad.gates + form_.order.candidate * cells;
    float* of_f = grad.gates + form_.order.forget * cells;
    float* of_o = grad.gates + form_.order.output * cells;
    for (int64_t j = 0; j < cells; ++j) {
      const float i = given_.i[at + j], f = given_.f[at + j];
      const float o = given_.o[at + j], ci = given_.ci[at + j];
      const float co = given_.co[at + j];
      of_o[j] = o * (1 - o) * grad.h[j] * co;
      float dcs = (1 - co * co) * grad.h[j] * o + grad.cs[j];
      if (peeps) dcs += of_o[j] * in_.wco[j];
      of_c[j] = (1 - ci * ci) * dcs * i;
      of_f[j] = f * (1 - f) * dcs * cs_prev[j];
      of_i[j] = i * (1 - i) * dcs * ci;
      grad.cs[j] = dcs * f;
      if (peeps) grad.cs[j] += of_i[j] * in_.wci[j] + of_f[j] * in_.wcf[j];
    }
  }

  KernelContext& context_;
  const LstmForm& form_;
  const LstmInputs& in_;
  const Given& given_;
};

class LstmGradKernel : public Kernel {
 public:
  explicit LstmGradKernel(const KernelInfo& info) : form_(LstmForm::of(info)) {}

  Status compute(KernelContext& context) const override {
    FloatTensors floats(context);
    TAGFLOW_ASSIGN(const LstmInputs in, lstm_inputs(context, form_, floats));
    TAGFLOW_ASSIGN(const Given given, given_inputs(form_, in, floats));
    TAGFLOW_RETURN_IF_ERROR(form_.has_time
                                ? of_sequence(context, in, given, floats)
                                : of_step(context, in, given, floats));
    floats.finish();
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 3 * lstm_cost(context, form_);
  }

 private:
  Status of_step(KernelContext& context, const LstmInputs& in,
                 const Given& given, FloatTensors& floats) const {
    const Shape state{in.batch, in.cells};
    TAGFLOW_ASSIGN(float* cs, floats.output(0, state));
    TAGFLOW_ASSIGN(float* gates,
                   floats.output(1, Shape{in.batch, 4 * in.cells}));
    float* peepholes[3];
    TAGFLOW_RETURN_IF_ERROR(make_peepholes(context, 2, floats, peepholes));
    TAGFLOW_ASSIGN(float* h, floats.temp(state));
    std::fill_n(h, in.batch * in.cells, 0.0f);
    const LstmGrad grad(context, form_, in, given);
    if (in.cells > 0) grad.run(gates, cs, h, 0, in.batch);
    if (form_.has_peephole) grad.add_peepholes(gates, peepholes);
    return {};
  }

  Status of_sequence(KernelContext& context, const LstmInputs& in,
                     const Given& given, FloatTensors& floats) const {
    const int64_t cells = in.cells, width = 4 * cells;
    const Shape state{in.batch, cells};
    TAGFLOW_ASSIGN(float* of_x, floats.output(0, context.input(1).shape()));
    TAGFLOW_ASSIGN(float* cs, floats.output(1, state));
    TAGFLOW_ASSIGN(float* h, floats.output(2, state));
    TAGFLOW_ASSIGN(float* of_w, floats.output(3, context.input(4).shape()));
    float* peepholes[3];
    TAGFLOW_RETURN_IF_ERROR(make_peepholes(context, 4, floats, peepholes));
    TAGFLOW_ASSIGN(float* of_b, floats.output(7, Shape{width}));
    // Without cells there is nothing to compute, for any number of steps.
    if (cells == 0) return {};
    const int64_t rows = in.length * in.batch;
    TAGFLOW_ASSIGN(const Shape all,
                   Shape::make(std::initializer_list<int64_t>{rows, width}));
    TAGFLOW_ASSIGN(float* gates, floats.temp(all));
    const LstmGrad grad(context, form_, in, given);
    const double cost =
        double(in.length) *
        (gemm_cost(DataType::kFloat, 1, cells, width) + 3 * double(width));
    context.parallel_for(in.batch, cost, [&](int64_t begin, int64_t end) {
      grad.run(gates, cs, h, begin, end);
    });
    if (form_.has_peephole) grad.add_peepholes(gates, peepholes);
    add_product(context, rows, in.inputs, width, {gates, width},
                {in.w, width, true}, of_x);
    add_outer_product(context, rows, in.inputs, width, in.x, gates, of_w);
    // The previous outputs: first the given output, then those of all steps but
    // the last.
    float* of_recurrent = of_w + in.inputs * width;
    const int64_t first = std::min(rows, in.batch);
    add_outer_product(context, first, cells, width, in.h_prev, gates,
                      of_recurrent);
    add_outer_product(context, rows - first, cells, width, given.h,
                      gates + first * width, of_recurrent);
    add_columns(gates, rows, width, of_b);
    return {};
  }

  // Outputs for the gradients of wci, wcf and wco.
  Status make_peepholes(KernelContext& context, int output,
                        FloatTensors& floats, float* to[3]) const {
    for (int n = 0; n < 3; ++n) {
      const Tensor& weights = context.input(form_.first_input() + 4 + n);
      TAGFLOW_ASSIGN(to[n], floats.output(output + n, weights.shape()));
    }
    return {};
  }

  LstmForm form_;
};

}  // namespace

void register_recurrent_lstm_grad_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"LSTMBlockCellGrad", "BlockLSTMGrad", "BlockLSTMGradV2"})
    registry.add<LstmGradKernel>(op,
                                 {{"T", {DataType::kFloat, DataType::kHalf}}});
}

}  // namespace tagflow::devices
