// Fused recurrent cells: LSTMBlockCell, BlockLSTM, GRUBlockCell and their
// gradients. The loss and the decoders of sequences without alignment.
#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"

namespace tagflow::graph {

namespace {

int64_t quarter(int64_t size) { return size < 0 ? kUnknown : size / 4; }

Status lstm_cell_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape x, c.with_rank(0, 2));
  TAGFLOW_ASSIGN(const PartialShape cs_prev, c.with_rank(1, 2));
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, {x.dim(0), cs_prev.dim(1)});
  return {};
}

Status lstm_cell_grad_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 2).status());
  TAGFLOW_ASSIGN(const PartialShape cs_prev, c.with_rank(1, 2));
  c.set_output(0, cs_prev);
  c.set_output(1, {cs_prev.dim(0), multiply_dims(cs_prev.dim(1), 4)});
  for (int i = 0; i < 3; ++i) {
    TAGFLOW_ASSIGN(const PartialShape weights, c.with_rank(4 + i, 1));
    c.set_output(2 + i, weights);
  }
  return {};
}

Status lstm_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape x, c.with_rank(1, 3));
  TAGFLOW_ASSIGN(const PartialShape b, c.with_rank(8, 1));
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, {x.dim(0), x.dim(1), quarter(b.dim(0))});
  return {};
}

// Each gradient has the shape of its tensor.
Status lstm_grad_shape(ShapeContext& c) {
  const int ranks[] = {3, 2, 2, 2, 1, 1, 1, 1};
  for (int i = 0; i < 8; ++i) {
    TAGFLOW_ASSIGN(const PartialShape of, c.with_rank(1 + i, ranks[i]));
    c.set_output(i, of);
  }
  return {};
}

Status gru_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape x, c.with_rank(0, 2));
  TAGFLOW_ASSIGN(const PartialShape h, c.with_rank(1, 2));
  for (int i = 0; i < 4; ++i) c.set_output(i, {x.dim(0), h.dim(1)});
  return {};
}

Status gru_grad_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape x, c.with_rank(0, 2));
  TAGFLOW_ASSIGN(const PartialShape h, c.with_rank(1, 2));
  c.set_output(0, x);
  c.set_output(1, h);
  c.set_output(2, {x.dim(0), h.dim(1)});
  c.set_output(3, {x.dim(0), multiply_dims(h.dim(1), 2)});
  return {};
}

// The size of the batch, as the logits and the input `lengths` have it.
Result<int64_t> ctc_batch(ShapeContext& c, int lengths) {
  TAGFLOW_ASSIGN(const PartialShape logits, c.with_rank(0, 3));
  TAGFLOW_ASSIGN(const PartialShape given, c.with_rank(lengths, 1));
  TAGFLOW_ASSIGN(const PartialShape both,
                 PartialShape({logits.dim(1)}).merge(given));
  return both.dim(0);
}

Status ctc_loss_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t batch, ctc_batch(c, 3));
  TAGFLOW_ASSIGN(PartialShape gradient, c.with_rank(0, 3));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 2).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  gradient.set_dim(1, batch);
  c.set_output(0, {batch});
  c.set_output(1, gradient);
  return {};
}

Status greedy_decoder_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t batch, ctc_batch(c, 1));
  c.set_output(0, {kUnknown, 2});
  c.set_output(1, {kUnknown});
  c.set_output(2, {2});
  c.set_output(3, {batch, 1});
  return {};
}

Status beam_decoder_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t batch, ctc_batch(c, 1));
  TAGFLOW_ASSIGN(const auto paths, c.attr<int64_t>("top_paths"));
  const int count = int(paths);
  for (int i = 0; i < count; ++i) {
    c.set_output(i, {kUnknown, 2});
    c.set_output(count + i, {kUnknown});
    c.set_output(2 * count + i, {2});
  }
  c.set_output(3 * count, {batch, paths});
  return {};
}

void add_ctc(OpRegistry& registry) {
  const OpDefBuilder::Texts options = {
      "preprocess_collapse_repeated: bool = false",
      "ctc_merge_repeated: bool = true",
      "ignore_longer_outputs_than_inputs: bool = false"};
  registry.add(OpDefBuilder("CTCLoss")
                   .inputs({"inputs: T", "labels_indices: int64",
                            "labels_values: int32", "sequence_length: int32"})
                   .outputs({"loss: T", "gradient: T"})
                   .attrs(options)
                   .attr("T: {float, double} = float")
                   .shape(ctc_loss_shape));
  registry.add(OpDefBuilder("CTCLossV2")
                   .inputs({"inputs: float", "labels_indices: int64",
                            "labels_values: int32", "sequence_length: int32"})
                   .outputs({"loss: float", "gradient: float"})
                   .attrs(options)
                   .shape(ctc_loss_shape));
  registry.add(
      OpDefBuilder("CTCGreedyDecoder")
          .inputs({"inputs: T", "sequence_length: int32"})
          .outputs({"decoded_indices: int64", "decoded_values: int64",
                    "decoded_shape: int64", "log_probability: T"})
          .attrs({"merge_repeated: bool = false", "blank_index: int = -1",
                  "T: {float, double} = float"})
          .shape(greedy_decoder_shape));
  registry.add(
      OpDefBuilder("CTCBeamSearchDecoder")
          .inputs({"inputs: T", "sequence_length: int32"})
          .outputs({"decoded_indices: top_paths * int64",
                    "decoded_values: top_paths * int64",
                    "decoded_shape: top_paths * int64", "log_probability: T"})
          .attrs({"beam_width: int >= 1", "top_paths: int >= 1",
                  "merge_repeated: bool = true", "T: {float, double} = float"})
          .shape(beam_decoder_shape));
}

// The inputs and outputs of LSTM ops, in this order.
void add_texts(OpDefBuilder& op, std::initializer_list<const char*> names,
               bool as_input) {
  for (const char* name : names) {
    const std::string text = std::string(name) + ": T";
    if (as_input) op.input(text);
    if (!as_input) op.output(text);
  }
}

void add_lstm(OpRegistry& registry, const char* name, bool has_time,
              const char* bias, const char* clip) {
  OpDefBuilder op(name);
  if (has_time) op.input("seq_len_max: int64");
  add_texts(op, {"x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"},
            true);
  add_texts(op, {"i", "cs", "f", "o", "ci", "co", "h"}, false);
  if (bias != nullptr) op.attr(bias);
  op.attrs({clip, "use_peephole: bool = false", "T: {half, float}"});
  registry.add(op.shape(has_time ? lstm_shape : lstm_cell_shape));
}

void add_lstm_grad(OpRegistry& registry, const char* name, bool has_time) {
  OpDefBuilder op(name);
  if (has_time) op.input("seq_len_max: int64");
  add_texts(op,
            {"x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b", "i", "cs",
             "f", "o", "ci", "co"},
            true);
  if (has_time) op.input("h: T");
  add_texts(op, {"cs_grad", "h_grad"}, true);
  if (has_time)
    add_texts(op,
              {"x_grad", "cs_prev_grad", "h_prev_grad", "w_grad", "wci_grad",
               "wcf_grad", "wco_grad", "b_grad"},
              false);
  else
    add_texts(op, {"cs_prev_grad", "dicfo", "wci_grad", "wcf_grad", "wco_grad"},
              false);
  op.attrs({"use_peephole: bool", "T: {half, float}"});
  registry.add(op.shape(has_time ? lstm_grad_shape : lstm_cell_grad_shape));
}

}  // namespace

void register_recurrent_ops(OpRegistry& registry) {
  const char* bias = "forget_bias: float = 1.0";
  const char* clip = "cell_clip: float = 3.0";
  add_lstm(registry, "LSTMBlockCell", false, bias, clip);
  add_lstm(registry, "BlockLSTM", true, bias, clip);
  add_lstm(registry, "BlockLSTMV2", true, nullptr, "cell_clip: float = 0.0");
  add_lstm_grad(registry, "LSTMBlockCellGrad", false);
  add_lstm_grad(registry, "BlockLSTMGrad", true);
  add_lstm_grad(registry, "BlockLSTMGradV2", true);
  const OpDefBuilder::Texts gru = {"x: T",   "h_prev: T", "w_ru: T",
                                   "w_c: T", "b_ru: T",   "b_c: T"};
  registry.add(OpDefBuilder("GRUBlockCell")
                   .inputs(gru)
                   .outputs({"r: T", "u: T", "c: T", "h: T"})
                   .attr("T: {float}")
                   .shape(gru_shape));
  registry.add(
      OpDefBuilder("GRUBlockCellGrad")
          .inputs({"x: T", "h_prev: T", "w_ru: T", "w_c: T", "b_ru: T",
                   "b_c: T", "r: T", "u: T", "c: T", "d_h: T"})
          .outputs({"d_x: T", "d_h_prev: T", "d_c_bar: T", "d_r_bar_u_bar: T"})
          .attr("T: {float}")
          .shape(gru_grad_shape));
  add_ctc(registry);
}

}  // namespace tagflow::graph
