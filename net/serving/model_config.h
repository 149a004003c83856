// ModelConfig: which versions of which model are served.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tensorflow::serving {
class ModelConfigList;
}

namespace tagflow::net::serving {

// The versions of a model to serve, out of those that there are.
struct VersionPolicy {
  enum class Kind : uint8_t { kLatest, kAll, kSpecific };

  Kind kind = Kind::kLatest;
  uint32_t num_latest = 1;
  std::set<int64_t> specific;

  std::set<int64_t> choose(const std::set<int64_t>& there) const;
};

struct ModelConfig {
  std::string name;
  // Has a folder for each version, whose name is its number, or is a SavedModel
  // itself, which then is version 1.
  std::string base_path;
  VersionPolicy policy = {};
  std::map<std::string, int64_t> labels = {};
};

// InvalidArgument for a name or a path that is empty, a name that cannot be
// part of a URL, or that two models have, and a negative version.
Status check_configs(const std::vector<ModelConfig>& configs);

// Reads the text format of TensorFlow Serving's ModelServerConfig, or its
// message: "model_config_list { config { name: "m" base_path: "/models/m" } }".
// Fields that say nothing of versions are ignored. InvalidArgument for another
// text, and as check_configs(); Unimplemented for another platform than
// TensorFlow's.
Result<std::vector<ModelConfig>> parse_model_configs(std::string_view text);
Result<std::vector<ModelConfig>> model_configs_from_proto(
    const tensorflow::serving::ModelConfigList& proto);

}  // namespace tagflow::net::serving
