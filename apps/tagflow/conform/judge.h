// Runs one recorded case and returns its outcome.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "actors/session/session.h"

namespace tagflow::apps {

enum class Outcome : uint8_t {
  kPassed,
  kFailed,   // `what` has the run and the reason
  kSkipped,  // something that it needs is missing; see `missing`
};

struct Verdict {
  Outcome outcome = Outcome::kPassed;
  std::string name;
  std::string what;
  // Ops; "(gradients)" if an op has no gradient, which `what` names.
  std::set<std::string> missing;
  Code code = Code::kOk;  // why it failed
};

// The default time limit of a run.
inline constexpr std::chrono::seconds kRunLimit{20};
// The time limit of a run that is expected to exceed it.
inline constexpr std::chrono::seconds kExpiringRunLimit{1};

// Runs the case of the folder in a new session: all runs in order, with the
// state kept. Only the nodes that they need are imported, and then extended by
// the gradients that the case requests. `cancel` ends a run, and fails the
// case.
Verdict judge_case(const std::filesystem::path& folder,
                   const actors::SessionOptions& options,
                   const std::optional<actors::CancelToken>& cancel = {});

}  // namespace tagflow::apps
