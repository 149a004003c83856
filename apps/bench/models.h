// tagflow bench models: Keras models here and in TensorFlow.
//
// What is compared is the whole of a forward pass, from a picture or a batch of
// sequences to the result, of models that TensorFlow makes with random weights
// and writes as a GraphDef. The result must be that of the eager model within
// a 10,000th of its largest element. The same model with variables, a
// SavedModel, is compared with that, here.
//
// Of train steps, signatures of SavedModels whose gradients and updates
// TensorFlow wrote, the losses of the first ones must agree so.
//
// TensorFlow has its defaults, and the fastest of its ways to run a model.
#pragma once

#include "apps/bench/compare.h"

namespace tagflow::apps {

// Prints a Markdown table, or one JSON object a line, with the median over
// the rounds; `options.bench.batch` and `options.only` hold, a model's name
// here. Unavailable where TensorFlow does not answer; a run-time error where
// results differ.
Failure compare_models(const CompareOptions& options);

}  // namespace tagflow::apps
