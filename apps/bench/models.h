// tagflow bench models: Keras models here and in TensorFlow.
//
// Compares whole forward passes, from an image or a batch of sequences to the
// result, of models that TensorFlow makes with random weights and writes as a
// GraphDef. The result must be that of the eager model within a 10,000th of its
// largest element. The same model with variables, a SavedModel, is compared
// with the frozen one here.
//
// Train steps are signatures of SavedModels whose gradients and updates
// TensorFlow wrote; the losses of the first steps must agree in the same way.
//
// TensorFlow uses its defaults, and the fastest of its ways to run a model.
#pragma once

#include "apps/bench/compare.h"

namespace tagflow::apps {

// Prints a Markdown table, or one JSON object a line, with the median over the
// rounds. Uses `options.bench.batch` and `options.only`, here the name of a
// model. Fails with Aborted if TensorFlow does not answer, and with a
// run-time error if results differ.
Failure compare_models(const CompareOptions& options);

}  // namespace tagflow::apps
