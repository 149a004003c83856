// Networks that classify images.
//
//   mlp   784 -> 512 -> 256 -> 10
//   cnn   3 x 3 convolutions of 32 and 64 channels, each with a 2 x 2 pool,
//         -> 256 -> 10
//   lstm  128 units that see a picture row by row, from the top, in a loop of
//         the graph; what they keep at the end -> 10
#pragma once

#include <array>
#include <string_view>

#include "graph/builder/variable_scope.h"

namespace tagflow::train_images {

inline constexpr int64_t kClasses = 10;

enum class Model : uint8_t { kMlp, kCnn, kLstm };
inline constexpr std::array kModels = {Model::kMlp, Model::kCnn, Model::kLstm};

// Defaults that train a model well.
struct ModelDefaults {
  std::string_view name;  // "mlp"
  std::string_view description;
  int64_t epochs = 1;
  int64_t batch = 1;
  double learning_rate = 0;
  bool is_augmented = false;
};
const ModelDefaults& defaults_of(Model model);

// The input of a model.
struct ModelInput {
  graph::Output images;  // float [batch, side, side], about 0; side is known
  // Dropout in training depends on the step, an int64 scalar, and on the seed.
  // Invalid: no dropout.
  graph::Output step = {};
  uint64_t seed = 0;
};

// Logits of [batch, kClasses]. Further calls share the variables of `vars`,
// which are of float. Thread-compatible, like the graph. The scope fails with
// InvalidArgument if the images are too small: a side is at least 1, and at
// least 4 for kCnn.
graph::Output apply_model(const graph::Scope& s,
                          const graph::VariableScope& vars, Model model,
                          const ModelInput& input);

}  // namespace tagflow::train_images
