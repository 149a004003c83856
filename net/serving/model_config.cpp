#include "net/serving/model_config.h"

#include <algorithm>
#include <iterator>

#include "graph/fault.h"
#include "net/proto/serving/config.pb.h"
#include "net/serving/text_proto.h"

namespace tagflow::net::serving {
namespace {

// Names are parts of URLs: those of TensorFlow Serving's REST API.
bool is_name(std::string_view name) {
  return !name.empty() && name.find_first_of("/:?#% ") == name.npos &&
         std::ranges::all_of(name,
                             [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

std::set<int64_t> VersionPolicy::choose(const std::set<int64_t>& there) const {
  switch (kind) {
    case Kind::kAll:
      return there;
    case Kind::kLatest: {
      const size_t count = std::min<size_t>(num_latest, there.size());
      return {std::prev(there.end(), ptrdiff_t(count)), there.end()};
    }
    case Kind::kSpecific:
      break;
  }
  std::set<int64_t> both;
  std::ranges::set_intersection(there, specific,
                                std::inserter(both, both.end()));
  return both;
}

Status check_configs(const std::vector<ModelConfig>& configs) {
  std::set<std::string> names;
  for (const ModelConfig& config : configs) {
    if (!is_name(config.name))
      return invalid_argument(
          "[serving] {:?} is no name of a model: it needs characters that URLs "
          "have between two slashes",
          config.name);
    if (!names.insert(config.name).second)
      return invalid_argument("[serving] two models have the name \"{}\"",
                              config.name);
    if (config.base_path.empty())
      return invalid_argument("[serving] model \"{}\" has no base_path",
                              config.name);
    for (const int64_t version : config.policy.specific)
      if (version < 0)
        return invalid_argument("[serving] model \"{}\": {} is no version",
                                config.name, version);
  }
  return {};
}

Result<std::vector<ModelConfig>> model_configs_from_proto(
    const tensorflow::serving::ModelConfigList& proto) {
  std::vector<ModelConfig> configs;
  for (const auto& entry : proto.config()) {
    if (!entry.model_platform().empty() &&
        entry.model_platform() != "tensorflow")
      return error(Code::kUnimplemented,
                   "[serving] model \"{}\" is of the platform \"{}\"; there is "
                   "\"tensorflow\"",
                   entry.name(), entry.model_platform());
    ModelConfig config{entry.name(), entry.base_path()};
    const auto& policy = entry.model_version_policy();
    if (policy.has_all()) {
      config.policy.kind = VersionPolicy::Kind::kAll;
    } else if (policy.has_specific()) {
      config.policy.kind = VersionPolicy::Kind::kSpecific;
      config.policy.specific.insert(policy.specific().versions().begin(),
                                    policy.specific().versions().end());
    } else if (policy.has_latest() && policy.latest().num_versions() > 0) {
      config.policy.num_latest = policy.latest().num_versions();
    }
    config.labels.insert(entry.version_labels().begin(),
                         entry.version_labels().end());
    configs.push_back(std::move(config));
  }
  TAGFLOW_RETURN_IF_ERROR(check_configs(configs));
  return configs;
}

Result<std::vector<ModelConfig>> parse_model_configs(std::string_view text) {
  return guarded("serving", [&]() -> Result<std::vector<ModelConfig>> {
    tensorflow::serving::ModelServerConfig proto;
    TAGFLOW_RETURN_IF_ERROR(
        parse_text_proto(text, &proto)
            .with_prefix("[serving] the configuration of models: "));
    if (!proto.has_model_config_list())
      return invalid_argument(
          "[serving] the configuration of models has no model_config_list");
    return model_configs_from_proto(proto.model_config_list());
  });
}

}  // namespace tagflow::net::serving
