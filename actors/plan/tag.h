// Ids of frame instances, which are parts of tags (devices/kernel.h), and the
// text of tags.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "devices/kernel.h"

namespace tagflow::actors {

// The id of a frame instance is a pure function of (parent instance, parent
// iteration, frame name): devices and processes compute the same id without
// communication. Each half is computed by three rounds of the 64-bit finalizer
// of MurmurHash3.
devices::Tag frame_tag(const devices::Tag& parent, int64_t parent_iteration,
                       uint64_t name_hash);
// FNV-1a, 64 bits, of a frame's static name.
uint64_t frame_name_hash(std::string_view name);

// A frame's name in words: "root" for that of the root, which is empty. A loop
// or function named "root" gets quotes, which distinguish it from the root. A
// name that begins with a quote gets them, too.
inline constexpr std::string_view kRootName = "root";
std::string frame_label(std::string_view name);

// Returns "outer/2/inner/3" for {"outer/2", "inner/3"}: the outermost level
// comes first. If there are many levels, as in a deep recursion, only the first
// and the last kShownLevels are named, with "..." between.
inline constexpr size_t kShownLevels = 3;
std::string join_levels(std::span<const std::string> levels);

}  // namespace tagflow::actors
