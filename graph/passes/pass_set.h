// PassSet: the passes that a session applies to its programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::graph {

// They are described in the list of graph/passes/passes.h.
enum class Pass : uint8_t {
  kFold,
  kIdentity,
  kCse,
  kDead,
  kHoist,
  kFuse,
  kInplace,
  kEdges,
  kAbsorb,
  kLayer,
  kFreeze,
  kSums,
  kGroup,
  kPack,
  kShapes,
  kAhead,
  kSaved,
};
inline constexpr uint8_t kNumPasses = 17;

// A set of passes; all of them by default. A value.
class PassSet {
 public:
  constexpr PassSet() = default;
  static constexpr PassSet none() { return PassSet(0); }
  static constexpr PassSet only(Pass pass) { return none().with(pass); }

  constexpr bool has(Pass pass) const { return (bits_ & bit(pass)) != 0; }
  constexpr PassSet with(Pass pass) const { return PassSet(bits_ | bit(pass)); }
  constexpr PassSet without(Pass pass) const {
    return PassSet(bits_ & ~bit(pass));
  }
  constexpr bool operator==(const PassSet&) const = default;

  // Parses names separated by commas. "-name" removes a pass; if it comes
  // first, from all of them. "all" and "none" are allowed, and an empty text
  // means "all". InvalidArgument, with a list of all names, for any other name.
  static Result<PassSet> parse(std::string_view text);
  // A text for parse(): "all", "none" or names.
  std::string to_string() const;

 private:
  constexpr explicit PassSet(uint32_t bits) : bits_(bits) {}
  static constexpr uint32_t bit(Pass pass) { return 1u << uint32_t(pass); }
  static constexpr uint32_t kAll = (1u << kNumPasses) - 1;

  uint32_t bits_ = kAll;
};

}  // namespace tagflow::graph
