#include "apps/tagflow/signature.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/common/feed.h"
#include "graph/graphdef.h"

namespace tagflow::apps {
namespace {

// The texts of --feed; each is checked before any file is opened.
Result<std::vector<FeedText>> parse_feeds(
    const std::vector<std::string>& texts) {
  std::vector<FeedText> feeds;
  for (const std::string& text : texts) {
    TAGFLOW_ASSIGN(FeedText feed, parse_feed(text));
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

// Fills `prepared`, but for its failure, which is returned.
Failure prepare_in(const SignatureOptions& options, Prepared& prepared) {
  if (options.fetches.empty() && options.targets.empty()) {
    return usage_error(
        invalid_argument("[run] nothing to run: give --fetch or --target"));
  }
  Status fetches = check_fetches(options.fetches);
  if (!fetches.ok()) return usage_error(std::move(fetches));
  Result<std::vector<FeedText>> texts = parse_feeds(options.feeds);
  if (!texts.ok()) return usage_error(std::move(texts).status());
  const auto session_options = to_session_options(options.engine);
  if (!session_options.ok()) return usage_error(session_options.status());

  Result<graph::Graph> graph = graph::load_graph(options.graph);
  if (!graph.ok()) return file_error(std::move(graph).status());
  LoadedFeeds feeds = load_feeds(*graph, *texts);
  if (feeds.failure.exit_code != ExitCode::kOk) return feeds.failure;
  prepared.feeds = std::move(feeds.feeds);

  auto session = actors::Session::create(*session_options);
  if (!session.ok()) return run_time_error(std::move(session).status());
  prepared.session = std::move(session).value();
  Status extended = prepared.session->extend(*graph);
  if (!extended.ok()) return run_time_error(std::move(extended));
  return {};
}

}  // namespace

void add_graph_option(CLI::App& app, std::string& path) {
  app.add_option("graph", path, "a GraphDef: *.pb is binary, *.pbtxt text")
      ->required()
      ->type_name("GRAPH");
}

void add_fetch_option(CLI::App& app, std::vector<std::string>& fetches) {
  app.add_option("--fetch", fetches, "a tensor to compute")
      ->type_name("NAME:PORT")
      ->expected(1)
      ->take_all();
}

void add_signature_options(CLI::App& app, SignatureOptions& options) {
  add_graph_option(app, options.graph);
  app.add_option("--feed", options.feeds,
                 "the value of a tensor: a .npy file, a .json file of "
                 "strings, or a JSON literal")
      ->type_name("NAME:PORT=VALUE")
      ->expected(1)
      ->take_all();
  add_fetch_option(app, options.fetches);
  app.add_option("--target", options.targets,
                 "a node to run, whose outputs are not wanted")
      ->type_name("NODE")
      ->expected(1)
      ->take_all();
  add_engine_options(app, options.engine);
}

Status check_fetches(const std::vector<std::string>& fetches) {
  for (const std::string& fetch : fetches) {
    TAGFLOW_RETURN_IF_ERROR(
        graph::parse_endpoint(fetch).status().with_prefix("[--fetch] "));
  }
  return {};
}

Prepared prepare(const SignatureOptions& options) {
  Prepared prepared;
  prepared.failure = prepare_in(options, prepared);
  return prepared;
}

}  // namespace tagflow::apps
