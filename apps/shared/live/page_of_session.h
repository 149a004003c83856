// --inspect: the live page of a program's session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/session/session.h"
#include "apps/shared/live/live_page.h"
#include "apps/shared/runs/run_names.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tagflow::apps {

struct InspectOptions {
  int port = -1;        // 0: one that is free; -1: no page
  std::string stop_at;  // "[FRAME/]ITERATION", or empty
};

// Declares --inspect; `options` must outlive the parsing.
CLI::Option* add_inspect_option(CLI::App& app, InspectOptions& options);
// Declares --stop-at, too.
void add_inspect_options(CLI::App& app, InspectOptions& options);

// Starts the page, whose title is that, and logs where it is; null without
// --inspect. A usage error for a --stop-at that is none; errors of
// LivePage::start().
Result<std::shared_ptr<live::LivePage>> open_page(const InspectOptions& options,
                                                  const std::string& title);

// NotFound, with the nearest name, for a --stop-at at a loop that the run does
// not have. `page` may be null.
Status check_stop(live::LivePage* page, const RunNames& names);

// While it lives, the page, if there is one, shows the session's queues and
// memory, and refuses what viewers ask of names that the run does not have.
class PageOfSession {
 public:
  // All outlive it. `names` may be null: then no name is refused.
  PageOfSession(live::LivePage* page, const actors::Session& session,
                const RunNames* names);
  ~PageOfSession();
  PageOfSession(const PageOfSession&) = delete;
  PageOfSession& operator=(const PageOfSession&) = delete;

 private:
  live::LivePage* const page_;
};

}  // namespace tagflow::apps
