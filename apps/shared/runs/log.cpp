#include "apps/shared/runs/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/shared/runs/line_writer.h"
#include "graph/fault.h"

namespace tagflow::apps {
namespace {

using Json = nlohmann::ordered_json;
using Time = std::chrono::system_clock::time_point;

// Of the message that this thread logs; null: nothing more is known.
thread_local const LogFields* current_fields = nullptr;

// "2026-11-29T10:15:30.123Z".
std::string time_text(Time time) {
  using std::chrono::milliseconds;
  const auto since =
      std::chrono::duration_cast<milliseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::time_t(seconds.count())),
                     (since - seconds).count());
}

std::string_view level_text(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return "error";
  return level == spdlog::level::warn ? "warning" : "info";
}

Json begin_line(Time time, std::string_view level, std::string_view message,
                const std::string& task) {
  Json line = {
      {"time", time_text(time)}, {"level", level}, {"message", message}};
  if (!task.empty()) line["task"] = task;
  return line;
}

std::string end_line(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

class JsonSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  JsonSink(std::unique_ptr<LineWriter> writer, std::string task)
      : writer_(std::move(writer)), task_(std::move(task)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto line = guarded(
        "log", [&]() -> Result<std::string> { return line_of(message); });
    if (line.ok()) {
      writer_->add(*line);
    } else {
      writer_->drop();
    }
  }
  void flush_() override { writer_->flush(); }

  std::string line_of(const spdlog::details::log_msg& message) const {
    const std::string_view text(message.payload.data(), message.payload.size());
    Json line =
        begin_line(message.time, level_text(message.level), text, task_);
    if (const LogFields* fields = current_fields; fields != nullptr) {
      if (fields->step) line["step"] = *fields->step;
      if (!fields->peer.empty()) line["peer"] = fields->peer;
      if (fields->code != Code::kOk) line["code"] = code_name(fields->code);
    }
    if (const auto place = place_in(text)) {
      line["node"] = place->node;
      if (!place->frame.empty()) line["frame"] = place->frame;
      if (place->iteration) line["iteration"] = *place->iteration;
    }
    return end_line(line);
  }

  const std::unique_ptr<LineWriter> writer_;
  const std::string task_;
};

bool logs_json() {
  const auto& sinks = spdlog::default_logger_raw()->sinks();
  return !sinks.empty() &&
         dynamic_cast<const JsonSink*>(sinks.front().get()) != nullptr;
}

}  // namespace

CLI::Option* add_log_format_option(CLI::App& app, bool& is_json) {
  static const std::map<std::string, bool> kFormats{{"text", false},
                                                    {"json", true}};
  return app
      .add_option("--log-format", is_json,
                  "the log on stderr: text, or json, an object a line, which "
                  "also has what is of no interest to whoever reads along")
      ->type_name("text|json")
      ->transform(CLI::CheckedTransformer(kFormats).description(""))
      ->default_str("text");
}

Status log_as_json(std::string task) {
  return guarded("log", [&]() -> Status {
    TAGFLOW_ASSIGN(
        auto writer,
        LineWriter::start(STDERR_FILENO, {.on_dropped = [task](uint64_t count) {
                            Json line = begin_line(
                                std::chrono::system_clock::now(), "warning",
                                "lines of the log were dropped: they were not "
                                "read as fast as they came",
                                task);
                            line["dropped"] = count;
                            return end_line(line);
                          }}));
    auto logger = std::make_shared<spdlog::logger>(
        "", std::make_shared<JsonSink>(std::move(writer), std::move(task)));
    // The process may end at once after an error.
    logger->flush_on(spdlog::level::err);
    spdlog::set_default_logger(std::move(logger));
    return {};
  });
}

void log_with(spdlog::level::level_enum level, const LogFields& fields,
              std::string_view message) {
  const LogFields* const before = std::exchange(current_fields, &fields);
  static_cast<void>(guarded([&] { spdlog::log(level, "{}", message); }));
  current_fields = before;
}

void log_news(const LogFields& fields, std::string_view message) {
  if (!logs_json()) return;
  const bool is_error = fields.code != Code::kOk;
  log_with(is_error ? spdlog::level::warn : spdlog::level::info, fields,
           message);
}

void log_event(const net::Event& event, std::string_view prefix) {
  static_cast<void>(guarded([&] {
    const LogFields fields{event.step, event.peer, event.code};
    if (event.kind == net::Event::Kind::kNews)
      return log_news(fields, event.text);
    if (logs_json()) return log_with(spdlog::level::warn, fields, event.text);
    spdlog::info("{}{}", prefix, event.text);
  }));
}

std::optional<ErrorPlace> place_in(std::string_view message) {
  constexpr std::string_view kNode = "(node \"",
                             kIteration = "\", iteration \"",
                             kDevice = "\", device ";
  const size_t begin = message.rfind(kNode);
  if (begin == message.npos) return {};
  std::string_view rest = message.substr(begin + kNode.size());
  const size_t end = rest.find(kDevice);
  if (end == rest.npos) return {};
  rest = rest.substr(0, end);
  ErrorPlace place;
  const size_t at = rest.find(kIteration);
  place.node = rest.substr(0, at);
  if (at == rest.npos) return place;
  const std::string_view tag = rest.substr(at + kIteration.size());
  const size_t slash = tag.rfind('/');
  if (slash == tag.npos) return place;
  uint64_t iteration = 0;
  const char* const last = tag.data() + tag.size();
  const auto [stop, code] =
      std::from_chars(tag.data() + slash + 1, last, iteration);
  if (code != std::errc() || stop != last) return place;
  place.frame = tag.substr(0, slash);
  place.iteration = iteration;
  return place;
}

}  // namespace tagflow::apps
