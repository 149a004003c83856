#include "actors/plan/tag.h"

#include <fmt/ranges.h>

namespace tagflow::actors {
namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 33);
}

}  // namespace

devices::Tag frame_tag(const devices::Tag& parent, int64_t parent_iteration,
                       uint64_t name_hash) {
  const auto half = [&](uint64_t seed, uint64_t own) {
    return mix(mix(mix(seed ^ own) + uint64_t(parent_iteration)) ^ name_hash);
  };
  devices::Tag tag;
  tag.frame_hi = half(0x9ae16a3b2f90404fu, parent.frame_hi);
  tag.frame_lo = half(0xc949d7c7509e6557u, parent.frame_lo);
  return tag;
}

uint64_t frame_name_hash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name) hash = (hash ^ uint8_t(c)) * 0x100000001b3u;
  return hash;
}

std::string frame_label(std::string_view name) {
  if (name.empty()) return std::string(kRootName);
  if (name == kRootName || name.starts_with('"'))
    return fmt::format("\"{}\"", name);
  return std::string(name);
}

std::string join_levels(std::span<const std::string> levels) {
  const auto join = [](std::span<const std::string> some) {
    return fmt::format("{}", fmt::join(some.begin(), some.end(), "/"));
  };
  // The dots would not be shorter than one level.
  if (levels.size() <= 2 * kShownLevels + 1) return join(levels);
  return fmt::format("{}/.../{}", join(levels.first(kShownLevels)),
                     join(levels.last(kShownLevels)));
}

}  // namespace tagflow::actors
