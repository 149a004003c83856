#include "apps/shared/program/terminal.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "graph/status_text.h"
#include "graph/utf8.h"
#include "graph/write_error.h"

namespace tagflow::apps {
namespace {

// The errno of the first failed write to stdout, which stdio does not keep.
int stdout_error = 0;

void note_stdout_error() {
  if (stdout_error == 0) stdout_error = errno != 0 ? errno : EIO;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// The message, for a pattern.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string text =
        printable_message({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return spdlog::details::make_unique<PrintableMessage>();
  }
};

bool is_control(std::string_view character) {
  const auto last = static_cast<unsigned char>(character.back());
  constexpr unsigned char kDelete = 0x7f;
  if (character.size() == 1) return last < ' ' || last == kDelete;
  // U+0080 to U+009F: 8-bit control characters.
  return character.size() == 2 && character[0] == '\xc2' && last < 0xa0;
}

// `is_kept` gets a text that begins with a control character.
template <class IsKept>
std::string escape_controls(std::string_view text, IsKept is_kept) {
  std::string safe;
  while (!text.empty()) {
    const size_t length = character_length(text);
    const std::string_view character =
        text.substr(0, std::max<size_t>(length, 1));
    const auto last = static_cast<unsigned char>(character.back());
    if (length == 0)
      safe += fmt::format("\\x{:02x}", last);
    else if (is_control(character) && !is_kept(text))
      safe += fmt::format("\\u{:04x}", last);
    else
      safe += character;
    text.remove_prefix(character.size());
  }
  return safe;
}

}  // namespace

std::string printable(std::string_view text) {
  return escape_controls(text, [](std::string_view rest) {
    return rest[0] == '\n' || rest[0] == '\t';
  });
}

std::string printable_name(std::string_view text) {
  return escape_controls(text, [](std::string_view) { return false; });
}

std::string printable_message(std::string_view text) {
  return escape_controls(shorten_message(text), [](std::string_view rest) {
    return rest[0] == '\t' || rest.starts_with("\n  ");
  });
}

size_t column_width(size_t longest) {
  constexpr size_t kWidest = 60;
  return std::min(longest, kWidest);
}

void print_text(std::string_view text) {
  const std::string safe = printable(text);
  errno = 0;
  if (std::fwrite(safe.data(), 1, safe.size(), stdout) != safe.size())
    note_stdout_error();
}

Status flush_stdout() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_stdout_error();
  if (stdout_error == 0) return {};
  return error(code_of_write(stdout_error, Code::kDataLoss),
               "[stdout] writing to stdout failed: {}",
               std::strerror(stdout_error));
}

void claim_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Takes the lowest free descriptor, which is this one. It is open for
    // reading only, so writes fail.
    const int opened =
        open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened < 0) return;
  }
}

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
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("%^%l:%$ %*");
  logger->set_formatter(std::move(formatter));
  spdlog::set_default_logger(std::move(logger));
}

ExitCode report(const Failure& failure) {
  if (failure.exit_code != ExitCode::kOk) {
    spdlog::error("{}", failure.status.to_string());
  }
  return failure.exit_code;
}

}  // namespace tagflow::apps
