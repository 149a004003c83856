// LSTMBlockCell, BlockLSTM, BlockLSTMV2.
#include "devices/kernels/recurrent/lstm.h"

#include <algorithm>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/elementwise/vector_math.h"

namespace tagflow::devices {

LstmForm LstmForm::of(const KernelInfo& info) {
  const std::string& op = info.node().op();
  LstmForm form;
  form.has_time = op.starts_with("Block");
  form.has_peephole = attr_of<bool>(info, "use_peephole");
  form.forget_bias = attr_of<float>(info, "forget_bias");
  form.cell_clip = attr_of<float>(info, "cell_clip");
  if (op.ends_with("V2")) form.order = {0, 2, 1, 3};
  return form;
}

Result<LstmInputs> lstm_inputs(KernelContext& context, const LstmForm& form,
                               FloatTensors& floats) {
  LstmInputs in;
  const int first = form.first_input();
  const Tensor& x = context.input(first);
  if (x.rank() != (form.has_time ? 3 : 2))
    return context.fail("x must be of rank {}, got {}", form.has_time ? 3 : 2,
                        x.describe());
  in.batch = x.dim(x.rank() - 2);
  in.inputs = x.dim(x.rank() - 1);
  if (form.has_time) {
    in.steps = x.dim(0);
    TAGFLOW_ASSIGN(in.length, index_scalar(context, 0, "seq_len_max"));
    if (in.length < 0 || in.length > in.steps)
      return context.fail("seq_len_max {} is outside of [0, {}]", in.length,
                          in.steps);
  }
  const Tensor& b = context.input(first + 7);
  if (b.rank() != 1 || b.dim(0) % 4 != 0)
    return context.fail("b must be a vector of 4 equal parts, got {}",
                        b.describe());
  const int64_t cells = in.cells = b.dim(0) / 4;
  int64_t joined = 0;
  if (__builtin_add_overflow(in.inputs, cells, &joined))
    return context.fail("{} inputs and {} cells are too many", in.inputs,
                        cells);
  // As in TensorFlow, whose other recurrent ops take an empty state.
  if (context.node().op() == "LSTMBlockCell" && (in.batch == 0 || cells == 0))
    return context.fail("cs_prev is empty: {} rows of {} cells", in.batch,
                        cells);
  const std::initializer_list<int64_t> state = {in.batch, cells};
  TAGFLOW_ASSIGN(in.x, form.has_time ? floats.input(first, "x", {-1, -1, -1})
                                     : floats.input(first, "x", {-1, -1}));
  TAGFLOW_ASSIGN(in.cs_prev, floats.input(first + 1, "cs_prev", state));
  TAGFLOW_ASSIGN(in.h_prev, floats.input(first + 2, "h_prev", state));
  TAGFLOW_ASSIGN(in.w, floats.input(first + 3, "w", {joined, 4 * cells}));
  const int64_t peepholes = form.has_peephole ? cells : -1;
  TAGFLOW_ASSIGN(in.wci, floats.input(first + 4, "wci", {peepholes}));
  TAGFLOW_ASSIGN(in.wcf, floats.input(first + 5, "wcf", {peepholes}));
  TAGFLOW_ASSIGN(in.wco, floats.input(first + 6, "wco", {peepholes}));
  TAGFLOW_ASSIGN(in.b, floats.input(first + 7, "b", {-1}));
  return in;
}

double lstm_cost(const KernelContext& context, const LstmForm& form) {
  const Tensor& x = context.input(form.first_input());
  const Tensor& w = context.input(form.first_input() + 3);
  if (x.rank() < 2 || w.rank() != 2 || x.num_elements() == 0) return 0;
  const int64_t rows = x.num_elements() / x.dim(x.rank() - 1);
  return 500 + gemm_cost(DataType::kFloat, rows, w.dim(1), w.dim(0)) +
         2 * double(rows) * double(w.dim(1));
}

namespace {

// The results of one step, for one row of the batch.
struct StepRow {
  float *i, *cs, *f, *o, *ci, *co, *h;

  StepRow at(int64_t offset) const {
    return {i + offset,  cs + offset, f + offset, o + offset,
            ci + offset, co + offset, h + offset};
  }
};

class LstmKernel : public Kernel {
 public:
  explicit LstmKernel(const KernelInfo& info) : form_(LstmForm::of(info)) {}

  Status compute(KernelContext& context) const override {
    FloatTensors floats(context);
    TAGFLOW_ASSIGN(const LstmInputs in, lstm_inputs(context, form_, floats));
    Shape shape = context.input(form_.first_input()).shape();
    shape.set_dim(shape.rank() - 1, in.cells);
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    StepRow out;
    float** outputs[] = {&out.i,  &out.cs, &out.f, &out.o,
                         &out.ci, &out.co, &out.h};
    for (int n = 0; n < 7; ++n) {
      TAGFLOW_ASSIGN(*outputs[n], floats.output(n, shape));
    }
    // Then there is nothing to multiply, for any number of empty steps.
    if (shape.num_elements() == 0) return {};
    const int64_t width = 4 * in.cells, rows = in.length * in.batch;
    TAGFLOW_ASSIGN(const Shape all,
                   Shape::make(std::initializer_list<int64_t>{rows, width}));
    TAGFLOW_ASSIGN(float* gates, floats.temp(all));
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(in.b, width, gates + row * width);
    add_product(context, rows, width, in.inputs, {in.x, in.inputs},
                {in.w, width}, gates);
    const double cost =
        double(in.length) *
        (gemm_cost(DataType::kFloat, 1, width, in.cells) + 2 * double(width));
    context.parallel_for(in.batch, cost, [&](int64_t begin, int64_t end) {
      run(context, in, gates, out, begin, end);
    });
    floats.finish();
    return {};
  }

  double cost(const KernelContext& context) const override {
    return lstm_cost(context, form_);
  }

 private:
  // Computes all steps of rows [begin, end) of the batch.
  void run(const KernelContext& context, const LstmInputs& in, float* gates,
           const StepRow& out, int64_t begin, int64_t end) const {
    const int64_t cells = in.cells, width = 4 * cells;
    const float *cs = in.cs_prev, *h = in.h_prev;
    for (int64_t step = 0; step < in.length; ++step) {
      context.check_cancelled();
      const int64_t first = step * in.batch;
      gemm<float>(end - begin, width, cells, {h + begin * cells, cells},
                  {in.recurrent_w(), width}, gates + (first + begin) * width,
                  width, true);
      for (int64_t row = begin; row < end; ++row)
        activate(in, gates + (first + row) * width, cs + row * cells,
                 out.at((first + row) * cells));
      cs = out.cs + first * cells;
      h = out.h + first * cells;
    }
  }

  void activate(const LstmInputs& in, const float* gates, const float* cs_prev,
                const StepRow& out) const {
    namespace vm = vector_math;
    const int64_t cells = in.cells;
    const float* gate_i = gates + form_.order.input * cells;
    const float* gate_c = gates + form_.order.candidate * cells;
    const float* gate_f = gates + form_.order.forget * cells;
    const float* gate_o = gates + form_.order.output * cells;
    const float bias = form_.forget_bias;
    const bool peeps = form_.has_peephole;
    for (int64_t j = 0; j < cells; ++j) {
      const float from_i = peeps ? cs_prev[j] * in.wci[j] : 0;
      out.i[j] = vm::sigmoid(gate_i[j] + from_i);
    }
    for (int64_t j = 0; j < cells; ++j) {
      const float from_f = peeps ? cs_prev[j] * in.wcf[j] : 0;
      out.f[j] = vm::sigmoid(gate_f[j] + bias + from_f);
    }
    for (int64_t j = 0; j < cells; ++j) out.ci[j] = vm::tanh(gate_c[j]);
    for (int64_t j = 0; j < cells; ++j)
      out.cs[j] = out.i[j] * out.ci[j] + out.f[j] * cs_prev[j];
    if (form_.cell_clip > 0)
      for (int64_t j = 0; j < cells; ++j)
        out.cs[j] = out.cs[j] < -form_.cell_clip  ? -form_.cell_clip
                    : out.cs[j] > form_.cell_clip ? form_.cell_clip
                                                  : out.cs[j];
    for (int64_t j = 0; j < cells; ++j) out.co[j] = vm::tanh(out.cs[j]);
    for (int64_t j = 0; j < cells; ++j) {
      const float from_o = peeps ? out.cs[j] * in.wco[j] : 0;
      out.o[j] = vm::sigmoid(gate_o[j] + from_o);
      out.h[j] = out.o[j] * out.co[j];
    }
  }

  LstmForm form_;
};

}  // namespace

void register_recurrent_lstm_kernels(KernelRegistry& registry) {
  for (const char* op : {"LSTMBlockCell", "BlockLSTM", "BlockLSTMV2"})
    registry.add<LstmKernel>(op, {{"T", {DataType::kFloat, DataType::kHalf}}});
}

}  // namespace tagflow::devices
