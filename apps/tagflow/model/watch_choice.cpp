#include "apps/tagflow/model/watch_choice.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "graph/node_name.h"

namespace tagflow::apps {
namespace {

// The whole text as a number that is not negative; -1 if it is none.
int64_t number_of(std::string_view text) {
  int64_t number = -1;
  const char* const end = text.data() + text.size();
  const auto [at, status] = std::from_chars(text.data(), end, number);
  return status == std::errc() && at == end && number >= 0 ? number : -1;
}

// "FRAME/3", "FRAME/3-5", "3".
bool parse_tag(std::string_view text, TagChoice& choice) {
  const size_t slash = text.rfind('/');
  if (slash != text.npos) choice.frames = std::string(text.substr(0, slash));
  const std::string_view range =
      slash == text.npos ? text : text.substr(slash + 1);
  const size_t dash = range.find('-');
  choice.first = number_of(range.substr(0, dash));
  choice.last =
      dash == range.npos ? choice.first : number_of(range.substr(dash + 1));
  return choice.first >= 0 && choice.last >= choice.first;
}

// Whether `text` ends with whole parts of a path.
bool ends_with_parts(std::string_view text, std::string_view end) {
  if (end.empty() || text == end) return true;
  return text.size() > end.size() && text.ends_with(end) &&
         text[text.size() - end.size() - 1] == '/';
}

}  // namespace

Result<WatchChoice> WatchChoice::parse(std::string_view text) {
  WatchChoice choice;
  const size_t at = text.find('@');
  const std::string_view tensor = text.substr(0, at);
  const size_t colon = tensor.rfind(':');
  choice.node = std::string(tensor.substr(0, colon));
  const int64_t port =
      colon == tensor.npos ? 0 : number_of(tensor.substr(colon + 1));
  if (choice.node.empty() || port < 0 || port > std::numeric_limits<int>::max())
    return error(Code::kInvalidArgument,
                 "{:?} is not NODE, NODE:PORT, NODE@ITERATION or "
                 "NODE@FRAME/ITERATION",
                 text);
  choice.port = int(port);
  if (at == text.npos) return choice;
  std::string_view rest = text.substr(at + 1);
  for (;;) {
    const size_t comma = rest.find(',');
    if (!parse_tag(rest.substr(0, comma), choice.tags.emplace_back()))
      return error(Code::kInvalidArgument,
                   "{:?} in {:?} is not ITERATION or FRAME/ITERATION, where "
                   "ITERATION may be FIRST-LAST",
                   rest.substr(0, comma), text);
    if (comma == rest.npos) return choice;
    rest.remove_prefix(comma + 1);
  }
}

bool WatchChoice::matches(std::string_view tag_text, int64_t iteration) const {
  const std::string_view frames = tag_text.substr(0, tag_text.rfind('/'));
  return tags.empty() || std::ranges::any_of(tags, [&](const TagChoice& tag) {
           return iteration >= tag.first && iteration <= tag.last &&
                  ends_with_parts(frames, tag.frames);
         });
}

}  // namespace tagflow::apps
