// The versions that a model's folder has. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tagflow::net::serving {

// The folders of versions, by number. A folder that is a SavedModel itself is
// version 1. Folders whose names are no numbers, or in which there is no model,
// are ignored; so is what cannot be read.
std::map<int64_t, std::string> find_versions(
    const std::filesystem::path& base_path);

// Another text if files of the version have changed: its graph, its variables,
// or its assets.
std::string stamp_of(const std::filesystem::path& folder);

}  // namespace tagflow::net::serving
