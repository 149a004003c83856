// --inspect of `tagflow run`: a live page of the run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/session/session.h"
#include "apps/tagflow/live/live_page.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

struct InspectOptions {
  int port = -1;        // 0: one that is free; -1: no page
  std::string stop_at;  // "[FRAME/]ITERATION", or empty
};

// Declares --inspect and --stop-at; `options` must outlive the parsing.
void add_inspect_options(CLI::App& app, InspectOptions& options);

// Starts the page, and logs where it is; null without --inspect. A usage error
// for a --stop-at that is none; errors of LivePage::start().
Result<std::shared_ptr<live::LivePage>> open_page(
    const InspectOptions& options);

// While it lives, the page, if there is one, shows the session's queues and
// memory.
class PageOfSession {
 public:
  // Both outlive it.
  PageOfSession(live::LivePage* page, const actors::Session& session);
  ~PageOfSession();
  PageOfSession(const PageOfSession&) = delete;
  PageOfSession& operator=(const PageOfSession&) = delete;

 private:
  live::LivePage* const page_;
};

}  // namespace tagflow::apps
