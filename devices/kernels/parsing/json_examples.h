// Examples as JSON, in protobuf's mapping.
#pragma once

#include <google/protobuf/util/type_resolver.h>

#include <memory>
#include <string>

#include "graph/status.h"

namespace tagflow::devices {

// Protobuf's mapping allows null as the value of a field, which then is not
// set, but not as an element of a list. The library leaves it out there, and
// TensorFlow reads it as 0 or an empty text: here it is refused. Thread-safe.
class JsonExamples {
 public:
  JsonExamples();
  // The Example as bytes; InvalidArgument says why the text is none.
  Result<std::string> read(const std::string& text) const;

 private:
  const std::unique_ptr<google::protobuf::util::TypeResolver> resolver_;
};

}  // namespace tagflow::devices
