// The paths of TensorFlow Serving's REST interface.
#pragma once

#include <string>
#include <string_view>

#include "net/serving/request.h"

namespace tagflow::net::serving {

struct RestPath {
  enum class Verb : uint8_t {
    kStatus,
    kMetadata,
    kPredict,
    kClassify,
    kRegress
  };

  Verb verb = Verb::kStatus;
  ModelSpec model;

  bool is_get() const {
    return verb == Verb::kStatus || verb == Verb::kMetadata;
  }
};

// NotFound for another path. What follows a "?" is ignored. Thread-safe.
Result<RestPath> parse_rest_path(std::string_view target);

}  // namespace tagflow::net::serving
