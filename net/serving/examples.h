// Examples of clients as the inputs of signatures, and what comes out as
// classes or values.
#pragma once

#include "net/serving/request.h"
#include "net/serving/servable.h"

namespace tensorflow::serving {
class ClassificationResult;
class Input;
class RegressionResult;
}  // namespace tensorflow::serving

namespace tagflow::net::serving {

// The inputs for these examples, each with the features of the context, a row
// for each example:
//   - a signature whose only input is a vector of strings parses them itself:
//     it gets them as bytes;
//   - otherwise each input is the feature of its name.
// InvalidArgument without examples, and for a feature that is missing or of
// another type or size; ResourceExhausted if the context would be repeated in
// more than kMostRepeatedBytes. Thread-safe, as all of these.
Result<Tensors> inputs_of_examples(const ServedSignature& signature,
                                   const tensorflow::serving::Input& input);
// InvalidArgument without examples.
Result<int64_t> count_examples(const tensorflow::serving::Input& input);

// From the outputs "classes", labels, and "scores", of which one may be
// missing: a row for each example. InvalidArgument for other outputs.
Status classes_of(const Tensors& outputs, int64_t examples,
                  tensorflow::serving::ClassificationResult* result);
// From the output "outputs", or the only one: a value for each example.
Status values_of(const Tensors& outputs, int64_t examples,
                 tensorflow::serving::RegressionResult* result);

}  // namespace tagflow::net::serving
