// What several commands say of workers on their command lines.
#pragma once

#include <string_view>

#include "graph/status.h"
#include "net/wire/messages.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tagflow::apps {

// "worker/1". InvalidArgument for what is not JOB/NUMBER.
Result<net::Task> parse_task(std::string_view text);

// Declares --drain-time: for how long a worker that is to end waits for its
// steps. `seconds`, which has the default, must outlive the parsing.
CLI::Option* add_drain_time_option(CLI::App& app, double& seconds);

}  // namespace tagflow::apps
