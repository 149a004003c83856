// tagflow serve --tf-session: sessions for TensorFlow's clients.
#pragma once

#include <string>

#include "apps/shared/program/exit_code.h"
#include "apps/tagflow/serve.h"
#include "net/tensorflow/session_limits.h"

namespace CLI {
class App;
}

namespace tagflow::apps {

struct ServeSessions {
  bool is_wanted = false;  // --tf-session
  std::string listen = "localhost:0";
  net::SessionLimits limits;
};

// Declares --tf-session, --listen and the limits. `sessions` must outlive the
// parsing.
void add_session_options(CLI::App& app, ServeSessions& sessions);

// Serves until a signal ends it.
Failure serve_sessions(const ServeOptions& options,
                       const ServeSessions& sessions);

}  // namespace tagflow::apps
