#include "tests/source_path.h"

namespace tagflow {

std::string source_path(std::string_view path) {
  return std::string(TAGFLOW_SOURCE_DIR "/").append(path);
}

}  // namespace tagflow
