// The bodies of TensorFlow Serving's REST interface: predict.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "net/serving/request.h"
#include "net/serving/servable.h"

namespace tagflow::net::serving {

// {"signature_name": ..., "instances": [...]}, whose values are rows, or
// {"inputs": ...}, whose values are whole tensors.
struct JsonPredict {
  std::string signature;
  bool is_in_rows = false;
  Tensors inputs;
};

// Reads a body; `find` gives the signature of a name, which says what types the
// values have. Other keys are ignored. InvalidArgument for another text, and
// errors of `find`. Values must be of their types, but missing inputs and
// shapes are for Servable::check(). Thread-safe.
using FindSignature =
    std::function<Result<const ServedSignature*>(const std::string& name)>;
Result<JsonPredict> read_json_predict(std::string_view body,
                                      const FindSignature& find);

// {"predictions": [...]} or {"outputs": ...}; a single output without its name.
// Strings are in base64 if the output's name ends with "_bytes".
// InvalidArgument if outputs that are to be in rows differ in their number of
// rows. Thread-safe.
Result<std::string> write_json_predict(const Tensors& outputs, bool is_in_rows);

}  // namespace tagflow::net::serving
