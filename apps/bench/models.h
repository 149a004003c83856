// tagflow bench models: frozen Keras models here and in TensorFlow.
//
// What is compared is the whole of a forward pass, from a picture or a batch of
// sequences to the result, of models that TensorFlow makes with random weights
// and writes as a GraphDef. The result must be that of the eager model within
// kModelTolerance of its largest element. TensorFlow has its defaults.
#pragma once

#include "apps/bench/compare.h"

namespace tagflow::apps {

inline constexpr double kModelTolerance = 1e-4;

// Prints a Markdown table, or one JSON object a line, with the median over
// the rounds; `options.bench.batch` and `options.only` hold, a model's name
// here. Unavailable where TensorFlow does not answer; a run-time error where
// results differ.
Failure compare_models(const CompareOptions& options);

}  // namespace tagflow::apps
