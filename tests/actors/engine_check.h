// The engine against the reference interpreter.
#pragma once

#include "tests/actors/configurations.h"
#include "tests/actors/create_session.h"
#include "tests/reference/interpreter.h"
#include "tests/reference/random_graph.h"

namespace tagflow::actors {

// Runs the case, and says what is not as expected: a value, or what happened
// to a fetch that is dead or never comes.
inline Status check_engine(const reference::Case& c,
                           const reference::Interpretation& expected,
                           const SessionOptions& options) {
  TAGFLOW_ASSIGN(auto session, create_session(options));
  TAGFLOW_RETURN_IF_ERROR(session->extend(c.graph));
  std::vector<std::string> live;
  std::vector<Tensor> values;
  for (size_t i = 0; i < c.fetches.size(); ++i) {
    const reference::Outcome& outcome = expected.fetches[i];
    if (outcome.state == reference::State::kLive) {
      live.push_back(c.fetches[i]);
      values.push_back(outcome.value);
      continue;
    }
    const bool is_dead = outcome.state == reference::State::kDead;
    const Status status = session->run(c.feeds, {c.fetches[i]}).status();
    if (status.code() != (is_dead ? Code::kInvalidArgument : Code::kDeadlock))
      return error(Code::kInternal, "{} should {}: {}", c.fetches[i],
                   is_dead ? "be dead" : "never come", status.to_string());
  }
  TAGFLOW_ASSIGN(const auto results, session->run(c.feeds, live));
  for (size_t i = 0; i < live.size(); ++i)
    if (!identical(results[i], values[i]))
      return error(Code::kInternal, "{} is {}, expected {}", live[i],
                   results[i].to_string(), values[i].to_string());
  return {};
}

}  // namespace tagflow::actors
