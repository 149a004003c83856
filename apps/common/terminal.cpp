#include "apps/common/terminal.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace tagflow::apps {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr &&
         std::string_view(term) != "dumb";
}

bool wants_colour() { return is_terminal() && !is_set("NO_COLOR"); }

void set_up_logging() {
  const auto mode = wants_colour() ? spdlog::color_mode::automatic
                                   : spdlog::color_mode::never;
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode);
  auto logger = std::make_shared<spdlog::logger>("", std::move(sink));
  logger->set_pattern("%^%l:%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

ExitCode report(const Failure& failure) {
  if (failure.exit_code != ExitCode::kOk) {
    spdlog::error("{}", failure.status.to_string());
  }
  return failure.exit_code;
}

}  // namespace tagflow::apps
