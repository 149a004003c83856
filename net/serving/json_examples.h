// The bodies of TensorFlow Serving's REST interface: classify and regress.
#pragma once

#include <string>
#include <string_view>

#include "graph/status.h"

namespace tensorflow::serving {
class ClassificationResult;
class Input;
class RegressionResult;
}  // namespace tensorflow::serving

namespace tagflow::net::serving {

// {"signature_name": ..., "context": {...}, "examples": [{...}]}, where a
// feature is a value or a list of values: numbers, strings, {"b64": ...}.
// Numbers without fractions are integers, if all of a list are. Other keys are
// ignored. InvalidArgument for another text. Thread-safe, as all of these.
Status read_json_examples(std::string_view body, std::string& signature,
                          tensorflow::serving::Input* input);

// {"results": [[["label", 0.5]]]}, and {"results": [0.5]}.
std::string write_json_classes(
    const tensorflow::serving::ClassificationResult& result);
std::string write_json_values(
    const tensorflow::serving::RegressionResult& result);

}  // namespace tagflow::net::serving
