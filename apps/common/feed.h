// Feeds from the command line: NAME:PORT=VALUE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/session/session.h"
#include "apps/common/exit_code.h"
#include "apps/common/feed_rows.h"
#include "graph/graph.h"

namespace tagflow::apps {

// A feed as written.
struct FeedText {
  std::string label;  // "name:0", "name", or a signature's name of an input
  std::string port;   // the tensor: the same, until a signature says more
  std::string value;  // a literal, or the path of a file
  bool has_value = true;
  bool is_file = false;
  bool by_rows = false;  // a row of the file in each step
};

// Splits at the first '='. VALUE is a file where it ends in ".npy" or ".json",
// with an '@' before it one of which each step takes a row; else a JSON
// literal. InvalidArgument where there is no name, a malformed port, a literal
// that is no JSON, an '@' without a file, or, where it `needs_value`, no '=':
// usage errors.
Result<FeedText> parse_feed(std::string_view text, bool needs_value = true);

// The feeds' tensors, each of the type of the graph's tensor; or why not, with
// the exit code. Checks that the tensor exists, is fed once, and may have the
// value's type and shape, and that files of rows have equally many. A feed
// without a value has an invalid tensor, and one by rows, of `batch` rows each
// (0: see FeedRows), the value of step 1; a batch of more rows than a file has
// is a warning, as a step then has some of them twice. SIGINT and SIGTERM while
// that is copied are failures, as in a run: REQUIRES that no Interruptible
// lives.
struct LoadedFeeds {
  std::vector<actors::Feed> feeds;
  struct ByRows {
    size_t feed = 0;   // its place
    std::string file;  // where the rows are from
    FeedRows rows;
  };
  std::vector<ByRows> by_rows;
  Failure failure;  // its code is kOk on success
};
LoadedFeeds load_feeds(const graph::Graph& graph,
                       const std::vector<FeedText>& texts, int64_t batch = 0);

}  // namespace tagflow::apps
