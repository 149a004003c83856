#include "apps/tagflow/worker_arguments.h"

#include <CLI/CLI.hpp>
#include <charconv>

namespace tagflow::apps {

Result<net::Task> parse_task(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view number =
      slash == text.npos ? std::string_view() : text.substr(slash + 1);
  const char* const end = number.data() + number.size();
  net::Task task;
  const auto [stop, code] = std::from_chars(number.data(), end, task.index);
  if (number.empty() || code != std::errc() || stop != end)
    return invalid_argument("{:?} is not JOB/NUMBER", text);
  task.job = text.substr(0, slash);
  return task;
}

CLI::Option* add_drain_time_option(CLI::App& app, double& seconds) {
  constexpr double kDay = 24 * 60 * 60;
  return app
      .add_option("--drain-time", seconds,
                  "for how long a worker that is to end waits for the steps "
                  "that run; another signal ends it at once")
      ->check(CLI::Range(0.0, kDay))
      ->capture_default_str()
      ->type_name("SECONDS");
}

}  // namespace tagflow::apps
