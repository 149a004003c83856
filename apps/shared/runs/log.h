// The log of a program: lines for people, or JSON for other programs.
#pragma once

#include <spdlog/common.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/wire/event.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tagflow::apps {

// Note [The log]
// All of it goes through spdlog's default logger. As text it is as
// set_up_logging() has it, written by whoever logs. As JSON each message is an
// object on a line of stderr, with "time", "level" and "message", and what else
// is known of it: "task", "step", "frame", "iteration", "node", "peer", "code".
// A thread of its own writes the lines. So nobody waits for a slow reader,
// least of all a thread of links: what does not fit into the buffer is dropped,
// and a later line says how many were.
//
// News, as that a worker has come, are in the JSON alone: text has what it
// always had, which is for whoever reads along.

// Declares --log-format text|json. `is_json` must outlive the parsing.
CLI::Option* add_log_format_option(CLI::App& app, bool& is_json);

// From now on the log is JSON. `task` is that of the process; empty: it has
// none. Called once, before threads log. ResourceExhausted if the system gives
// no thread: then the log stays text.
Status log_as_json(std::string task);

// What a message is about, as far as it is known.
struct LogFields {
  std::optional<uint64_t> step;
  std::string peer;
  Code code = Code::kOk;
};

// Logs the message: in both formats, or as JSON alone. Thread-safe, as all of
// these are; they throw nothing.
void log_with(spdlog::level::level_enum level, const LogFields& fields,
              std::string_view message);
void log_news(const LogFields& fields, std::string_view message);
// An event of a cluster. As text, a warning is an info after the prefix.
void log_event(const net::Event& event, std::string_view prefix);

// Where an error of a step says that it happened, at the end of its message:
// (node "x", iteration "outer/2/inner/3", device CPU:0).
struct ErrorPlace {
  std::string node;
  std::string frame;  // "outer/2/inner"; empty: the root
  std::optional<uint64_t> iteration;
};
// Nothing if the message says no place.
std::optional<ErrorPlace> place_in(std::string_view message);

}  // namespace tagflow::apps
