#include "apps/common/engine_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "graph/passes/passes.h"

namespace tagflow::apps {
namespace {

std::string list_of_passes() {
  std::string names;
  for (const graph::PassItem& pass : graph::passes())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", pass.name);
  return fmt::format(
      "what is done to the graph, separated by commas: {}; or none; "
      "=-NAME: all but that",
      names);
}

// The spellings of the one device that there is.
bool is_single_cpu(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return text == "cpu" || text == "cpu:1" || text == "cpu=1" ||
         text == "/cpu:0" || text == "/device:cpu:0";
}

}  // namespace

void add_engine_options(CLI::App& app, EngineOptions& options) {
  constexpr int kMaxWorkers = 1024;
  const std::string group = "Engine";
  app.add_option("--workers", options.workers,
                 "worker threads; 0: one per core")
      ->check(CLI::Range(0, kMaxWorkers))
      ->group(group);
  app.add_option("--window", options.window,
                 "parallel_iterations of every loop; 0: as the graph says")
      ->check(CLI::Range(0, 1 << 20))
      ->group(group);
  app.add_flag("--mailbox-only", options.mailbox_only,
               "send every batch of tokens through the actors' mailboxes")
      ->group(group);
  app.add_option("--passes", options.passes, list_of_passes())
      ->type_name("LIST|none")
      ->group(group);
  app.add_option("--devices", options.devices,
                 "devices to use; cpu:1 is all there is yet")
      ->type_name("SPEC")
      ->group(group);
  app.add_option("--cluster", options.cluster,
                 "cluster to run on; not there yet")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--seed", options.seed, "seed of the session's random ops")
      ->group(group);
  app.add_option("--timeout", options.timeout,
                 "seconds after which a run ends; 0: none")
      ->check(CLI::Range(0.0, 1e9))
      ->group(group);
}

Result<actors::SessionOptions> to_session_options(
    const EngineOptions& options) {
  if (!options.cluster.empty()) {
    return error(Code::kUnimplemented,
                 "[--cluster] runs over several processes do not exist yet");
  }
  if (!options.devices.empty() && !is_single_cpu(options.devices)) {
    return invalid_argument(
        "[--devices] \"{}\" asks for more than one CPU (\"cpu:1\"), which is "
        "all there is yet",
        options.devices);
  }
  actors::SessionOptions session;
  Result<graph::PassSet> passes = graph::PassSet::parse(options.passes);
  if (!passes.ok())
    return std::move(passes).status().with_prefix("[--passes] ");
  session.passes = *passes;
  session.workers = options.workers;
  session.window = options.window;
  session.seed = options.seed;
  if (options.mailbox_only) session.hand_off = actors::HandOff::kMailbox;
  session.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.timeout));
  return session;
}

}  // namespace tagflow::apps
