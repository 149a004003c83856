// Feeds from the command line: NAME:PORT=VALUE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/session/session.h"
#include "apps/shared/program/exit_code.h"
#include "apps/tagflow/model/feed_rows.h"
#include "graph/graph.h"

namespace tagflow::apps {

// A feed as written.
struct FeedText {
  std::string label;  // "name:0", "name", or an input's name in a signature
  std::string port;   // the tensor: the label, until a signature resolves it
  std::string value;  // a literal, or the path of a file
  std::string array;  // of an .npz file: the name of the array
  bool has_value = true;
  bool is_file = false;
  bool by_rows = false;  // a row of the file in each step
};

// Splits at the first '='. VALUE is a file if it ends in ".npy" or ".json", or
// an array of one if it ends in ".npz", where the array has the feed's name, or
// in ".npz:ARRAY". Each step takes a row of it if it begins with '@'. Any other
// VALUE is a JSON literal. Returns InvalidArgument, a usage error, if the name
// is missing, the port is malformed, a literal is not JSON, an '@' is without a
// file, or '=' is missing and `needs_value` is true.
Result<FeedText> parse_feed(std::string_view text, bool needs_value = true);

// The feeds' tensors, each of the type of the graph's tensor, or a failure with
// its exit code. Checks that each tensor exists, is fed once, and may have the
// value's type and shape, and that all files of rows have the same number of
// rows. A feed without a value has an invalid tensor. A feed by rows, with
// `batch` rows in a step (0: see FeedRows), has the value of step 1; a batch of
// more rows than a file has repeats rows, and causes a warning. SIGINT and
// SIGTERM during the copy are failures, as in a run. REQUIRES: no Interruptible
// lives.
struct LoadedFeeds {
  std::vector<actors::Feed> feeds;
  struct ByRows {
    size_t feed = 0;   // its index
    std::string file;  // that has the rows
    FeedRows rows;
  };
  std::vector<ByRows> by_rows;
  Failure failure;  // its code is kOk on success
};
LoadedFeeds load_feeds(const graph::Graph& graph,
                       const std::vector<FeedText>& texts, int64_t batch = 0);

}  // namespace tagflow::apps
