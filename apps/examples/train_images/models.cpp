#include "apps/examples/train_images/models.h"

#include "apps/shared/training/picture_layers.h"
#include "autodiff/train/layer.h"
#include "graph/builder/builder.h"
#include "graph/builder/rnn.h"

namespace tagflow::train_images {
namespace {

using namespace graph;  // NOLINT: the builder's vocabulary
namespace layers = autodiff::layers;

constexpr ModelDefaults kDefaults[] = {
    {.name = "mlp",
     .description = "two dense layers",
     .epochs = 20,
     .batch = 128,
     .learning_rate = 1e-3},
    {.name = "cnn",
     .description = "two convolutions and a dense layer",
     .epochs = 12,
     .batch = 64,
     .learning_rate = 1e-3,
     .is_augmented = true},
    {.name = "lstm",
     .description = "an LSTM over the rows, as a loop of the graph",
     .epochs = 10,
     .batch = 64,
     .learning_rate = 2e-3},
};

Output classify(const Scope& s, const VariableScope& vars, const Output& x) {
  return layers::dense(s, vars, x, {.units = kClasses, .name = "logits"});
}

// Dropout in training; `layer` distinguishes the layers of a model.
Output dropout(const Scope& s, const ModelInput& input, const Output& x,
               uint64_t layer, double rate) {
  if (!input.step.valid()) return x;
  constexpr uint64_t kMostLayers = 16;
  const auto key = int64_t(input.seed * kMostLayers + layer);
  const Output seed = ops::pack(s, {key, input.step});
  return layers::dropout(s, x, seed, {.rate = rate});
}

Output apply_mlp(const Scope& s, const VariableScope& vars,
                 const ModelInput& input) {
  constexpr double kRate = 0.3;
  Output x = layers::flatten(s, input.images);
  x = dropout(s, input, training::hidden_layer(s, vars, x, "hidden_0", 512), 0,
              kRate);
  x = dropout(s, input, training::hidden_layer(s, vars, x, "hidden_1", 256), 1,
              kRate);
  return classify(s, vars, x);
}

Output apply_cnn(const Scope& s, const VariableScope& vars,
                 const ModelInput& input) {
  constexpr double kRate = 0.5;
  constexpr int64_t kChannels[] = {32, 64};
  Output x = training::convolutions(
      s, vars, ops::expand_dims(s, input.images, -1), kChannels);
  x = training::hidden_layer(s, vars, layers::flatten(s, x), "hidden", 256);
  return classify(s, vars, dropout(s, input, x, 0, kRate));
}

Output apply_lstm(const Scope& s, const VariableScope& vars,
                  const ModelInput& input) {
  constexpr double kRate = 0.2;
  // Each time step reads a row of pixels.
  const RnnResult rows =
      dynamic_rnn(s, vars, *lstm_cell({.units = 128}), input.images);
  if (!s.ok()) return {};
  return classify(s, vars, dropout(s, input, rows.state[1], 0, kRate));
}

}  // namespace

const ModelDefaults& defaults_of(Model model) {
  return kDefaults[size_t(model)];
}

Output apply_model(const Scope& s, const VariableScope& vars, Model model,
                   const ModelInput& input) {
  if (!s.ok()) return {};
  const int64_t side = input.images.shape().dim(2);
  // Two pools halve it.
  const int64_t least = model == Model::kCnn ? 4 : 1;
  if (side < least) {
    s.fail(invalid_argument(
        "[{}] pictures are {} x {}; they must be {} x {} or larger",
        defaults_of(model).name, side, side, least, least));
    return {};
  }
  const VariableScope shared = vars.with_reuse(Reuse::kAuto);
  switch (model) {
    case Model::kMlp:
      return apply_mlp(s, shared, input);
    case Model::kCnn:
      return apply_cnn(s, shared, input);
    case Model::kLstm:
      return apply_lstm(s, shared, input);
  }
  s.fail(error(Code::kInternal, "[train_images] no such model"));
  return {};
}

}  // namespace tagflow::train_images
