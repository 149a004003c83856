#include "apps/tagflow/model/feed.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "apps/shared/io/npy.h"
#include "graph/builder/builder.h"
#include "tests/temp_path.h"

namespace tagflow::apps {
namespace {

namespace ops = graph::ops;

// x: float [2,?], n: int32 scalar, s: strings of any shape.
graph::Graph make_graph() {
  graph::Graph graph;
  const graph::Scope scope(graph);
  ops::placeholder(scope.named("x"), DataType::kFloat, PartialShape({2, -1}));
  ops::placeholder(scope.named("n"), DataType::kInt32, PartialShape::scalar());
  ops::placeholder(scope.named("s"), DataType::kString);
  REQUIRE(scope.ok());
  return graph;
}

LoadedFeeds load(std::vector<std::string> texts) {
  std::vector<FeedText> feeds;
  for (const std::string& text : texts) {
    Result<FeedText> feed = parse_feed(text);
    REQUIRE(feed.ok());
    feeds.push_back(std::move(feed).value());
  }
  return load_feeds(make_graph(), feeds);
}

TEST_CASE("feeds: literals take the type of the tensor that they feed") {
  const LoadedFeeds loaded =
      load({"x:0=[[1, 2, 3], [4, 5, 6]]", "n=7", "s:0=[\"a=b\"]"});
  REQUIRE(loaded.failure.exit_code == ExitCode::kOk);
  REQUIRE(loaded.feeds.size() == 3);
  CHECK(loaded.feeds[0].first == "x:0");
  CHECK(loaded.feeds[0].second.describe() == "float[2,3]");
  CHECK(loaded.feeds[1].first == "n:0");
  CHECK(loaded.feeds[1].second.scalar_value<int32_t>() == 7);
  CHECK(loaded.feeds[2].second.scalar_value<std::string>() == "a=b");
}

TEST_CASE("feeds: malformed texts are refused before any graph is read") {
  for (const char* text : {"", "x", "=1", "x:0=", "x:0=[1,", "x:0=abc",
                           "x:-1=1", "x:y=1", "x:99999999999=1"}) {
    CAPTURE(text);
    CHECK(!parse_feed(text).ok());
  }
}

TEST_CASE("a feed may lack a value if nothing runs") {
  const Result<FeedText> feed = parse_feed("x:0", /*needs_value=*/false);
  REQUIRE(feed.ok());
  CHECK(feed->port == "x:0");
  CHECK_FALSE(feed->has_value);
  const LoadedFeeds loaded = load_feeds(make_graph(), {*feed});
  REQUIRE(loaded.failure.exit_code == ExitCode::kOk);
  REQUIRE(loaded.feeds.size() == 1);
  CHECK(loaded.feeds[0].first == "x:0");
  CHECK_FALSE(loaded.feeds[0].second.valid());
  CHECK(load_feeds(make_graph(), {*feed, *feed}).failure.exit_code ==
        ExitCode::kUsage);
  CHECK(parse_feed("x=1", /*needs_value=*/false)->has_value);
  CHECK(parse_feed("x").status().message() ==
        "[--feed] \"x\" is not NAME:PORT=VALUE; a run needs a value");
  CHECK(parse_feed("=1").status().message() ==
        "[--feed] \"=1\" is not NAME:PORT=VALUE");
  CHECK(parse_feed("=1", /*needs_value=*/false).status().message() ==
        "[--feed] \"=1\" is not NAME:PORT[=VALUE]");
}

TEST_CASE("a literal that is not JSON gets a hint") {
  CHECK(parse_feed("x:0=[NaN]").status().message() ==
        "[--feed] the value of \"x:0\" is neither a .npy, .npz or .json file "
        "nor a "
        "JSON literal: [NaN]; JSON cannot express them: write \"nan\", "
        "\"inf\" and \"-inf\", in double quotes");
}

TEST_CASE("feeds: errors use the user's name for a tensor") {
  FeedText feed{"input", "n:0", "1.5"};
  CHECK(load_feeds(make_graph(), {feed}).failure.status.message() ==
        "[--feed] input: [literal] 1.5 is not a value of type int32");
  feed.value = "[1]";
  CHECK(load_feeds(make_graph(), {feed}).failure.status.message() ==
        "[--feed] \"input\" is int32[], but the value is int32[1]");
}

struct Refusal {
  std::vector<std::string> feeds;
  ExitCode exit_code;
  std::string message;
};

TEST_CASE("feeds that do not fit the graph are refused, and it says why") {
  const std::vector<Refusal> refusals = {
      {{"y:0=1"}, ExitCode::kRunTimeError, "y"},
      {{"x:1=1"}, ExitCode::kRunTimeError, "x"},
      {{"x:0=1"}, ExitCode::kRunTimeError, "the value is float[]"},
      {{"x:0=[[1], [2], [3]]"}, ExitCode::kRunTimeError, "float[3,1]"},
      {{"n:0=1.5"}, ExitCode::kUsage, "not a value of type int32"},
      {{"n:0=[1]"}, ExitCode::kRunTimeError, "int32[1]"},
      {{"s:0=1"}, ExitCode::kUsage, "not a value of type string"},
      {{"n:0=1", "n=2"}, ExitCode::kUsage, "\"n:0\" is fed twice"},
      {{"x:0=/no/such/file.npy"}, ExitCode::kMissingData, "no file"},
      {{"s:0=/no/such/file.json"}, ExitCode::kMissingData, "no file"},
  };
  for (const Refusal& refusal : refusals) {
    CAPTURE(refusal.feeds[0]);
    const LoadedFeeds loaded = load(refusal.feeds);
    CHECK(loaded.failure.exit_code == refusal.exit_code);
    CHECK(loaded.failure.status.to_string().find(refusal.message) !=
          std::string::npos);
  }
}

TEST_CASE("an .npy file of another type is refused") {
  const auto path = testing::temp_path("feed.npy");
  REQUIRE(io::write_npy(path, Tensor::scalar(1.0)).ok());
  const LoadedFeeds loaded = load({"n:0=" + path.string()});
  std::filesystem::remove(path);
  CHECK(loaded.failure.exit_code == ExitCode::kRunTimeError);
  CHECK(loaded.failure.status.message() ==
        "[--feed] \"n:0\" is int32[], but the value is double[], in \"" +
            path.string() + "\"; write the file with .astype(\"int32\")");
}

TEST_CASE("a file with an @ is fed by rows") {
  const auto path = testing::temp_path("rows.json");
  std::ofstream(path) << "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]";
  const std::string text = "x=@" + path.string();
  const LoadedFeeds loaded = load({"n=1", text});
  REQUIRE(loaded.failure.exit_code == ExitCode::kOk);
  REQUIRE(loaded.by_rows.size() == 1);
  CHECK(loaded.by_rows[0].feed == 1);
  CHECK(identical(loaded.feeds[1].second,
                  Tensor::of<float>({2, 2}, {1, 2, 3, 4})));
  CHECK(identical(*loaded.by_rows[0].rows.at(2),
                  Tensor::of<float>({2, 2}, {5, 6, 7, 8})));
  // The file as a whole is none of what may be fed.
  CHECK(load({"x=" + path.string()}).failure.exit_code ==
        ExitCode::kRunTimeError);
  CHECK(parse_feed("x=@1").status().message() ==
        "[--feed] the value of \"x\" begins with @, but \"1\" is not a .npy, "
        ".npz or .json file");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tagflow::apps
