// The versions that a model's folder has. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tagflow::net::serving {

struct FoundVersion {
  std::string folder;
  // Another text if files of the model have changed.
  std::string stamp;
};

// By number. A folder that is a SavedModel itself is version 1. Folders whose
// names are no numbers, or in which there is no model, are ignored; so is what
// cannot be read.
std::map<int64_t, FoundVersion> find_versions(
    const std::filesystem::path& base_path);

}  // namespace tagflow::net::serving
