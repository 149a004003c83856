// Runs one recorded case and says what became of it.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "actors/session/session.h"

namespace tagflow::apps {

enum class Outcome {
  kPassed,
  kFailed,   // `what` says in which run and why
  kSkipped,  // something that it needs does not exist; see `missing`
};

struct Verdict {
  Outcome outcome = Outcome::kPassed;
  std::string name;
  std::string what;
  // Ops; "(gradients)" where `what` says of which op there is no gradient.
  std::set<std::string> missing;
};

// The longest that a run may take where the options do not say.
inline constexpr std::chrono::seconds kRunLimit{20};
// The same of a run that is to end by that.
inline constexpr std::chrono::seconds kExpiringRunLimit{1};

// Runs the case of the folder in a session of its own: all runs in order, the
// state kept. Only the nodes that they need are imported, and then extended by
// the gradients that the case asks for. `cancel` ends a run, and fails the
// case.
Verdict judge_case(const std::filesystem::path& folder,
                   const actors::SessionOptions& options,
                   const std::optional<actors::CancelToken>& cancel = {});

}  // namespace tagflow::apps
