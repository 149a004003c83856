#include "graph/status_text.h"

#include <algorithm>

#include "graph/utf8.h"

namespace tagflow {
namespace {

// Of what is cut.
constexpr double kShareOfStart = 0.7;

}  // namespace

std::string cut_middle(std::string_view text, size_t limit,
                       double share_of_start) {
  if (text.size() <= limit) return std::string(text);
  const size_t head =
      beginning_of(text, size_t(double(limit) * share_of_start)).size();
  const size_t tail = beginning_of(text, text.size() - (limit - head)).size();
  return fmt::format("{}... ({} bytes left out) ...{}", text.substr(0, head),
                     tail - head, text.substr(tail));
}

std::string shorten_message(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r";
  if (text.size() <= kLongestWord) return std::string(text);
  std::string words;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(kSpaces), text.size());
    words += cut_middle(text.substr(0, end), kLongestWord, kShareOfStart);
    const size_t next =
        std::min(text.find_first_not_of(kSpaces, end), text.size());
    words += text.substr(end, next - end);
    text.remove_prefix(next);
  }
  return cut_middle(words, kLongestMessage, kShareOfStart);
}

bool mentions_file(std::string_view text, std::string_view path) {
  constexpr std::string_view kBefore = "\" '", kAfter = "\"':/.";
  for (size_t at = text.find(path); at != text.npos;
       at = text.find(path, at + 1)) {
    const size_t end = at + path.size();
    const bool begins = at == 0 || kBefore.find(text[at - 1]) != text.npos;
    const bool ends = end == text.size() || kAfter.find(text[end]) != text.npos;
    if (begins && ends) return true;
  }
  return false;
}

Status name_file(Status status, std::string_view path) {
  if (status.ok() || mentions_file(status.message(), path)) return status;
  return std::move(status).with_prefix(fmt::format("{}: ", path));
}

}  // namespace tagflow
