// PassSet: which passes a session applies to what it runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::graph {

// What each does stands with its entry in the list of graph/passes/passes.h.
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

  // Names separated by commas. "-name" takes one away, from all where it comes
  // first; "all" and "none" are what they say, and an empty text is "all".
  // InvalidArgument for any other name, listing what there is.
  static Result<PassSet> parse(std::string_view text);
  // A text that parse() understands: "all", "none" or names.
  std::string to_string() const;

 private:
  constexpr explicit PassSet(uint32_t bits) : bits_(bits) {}
  static constexpr uint32_t bit(Pass pass) { return 1u << uint32_t(pass); }
  static constexpr uint32_t kAll = (1u << kNumPasses) - 1;

  uint32_t bits_ = kAll;
};

}  // namespace tagflow::graph
