// What `tagflow run --watch` chooses: NODE[:PORT][@TAG[,TAG...]].
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::apps {

// The end of a tag's text, as "outer/2/inner/3": frames and iterations from an
// inner one on, the last of which may be a range. "" is every tag.
struct TagChoice {
  std::string frames;  // before the last slash; "": any
  int64_t first = 0;   // iterations
  int64_t last = 0;
};

// A tensor in some iterations.
struct WatchChoice {
  std::string node;
  int port = 0;
  std::vector<TagChoice> tags;  // empty: all

  // InvalidArgument if the text is no such choice.
  static Result<WatchChoice> parse(std::string_view text);
  // Whether a tag of that text, whose last iteration is `iteration`, is one of
  // these.
  bool matches(std::string_view tag_text, int64_t iteration) const;
  std::string tensor() const { return fmt::format("{}:{}", node, port); }
};

}  // namespace tagflow::apps
