// tagflow bench input: pipelines of tf.data here and in TensorFlow.
//
//   records   TFRecords of 60,000 Examples, in batches of 128: ParseExample,
//             DecodeRaw
//   jpegs     400 JPEG pictures, each decoded and resized to 224 x 224
//
// TensorFlow makes the files and the graphs (input.py). Both sides run the same
// graphs, which call their functions on two threads, and must come to the same
// result.
#pragma once

#include "apps/bench/compare.h"

namespace tagflow::apps {

// Prints a Markdown table, or one JSON object a line, with the medians over the
// rounds. Uses `options.only`, here the name of a pipeline. Fails with Aborted
// if TensorFlow does not answer, and with a run-time error if results differ.
Failure compare_input(const CompareOptions& options);

}  // namespace tagflow::apps
