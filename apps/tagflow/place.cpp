// tagflow place: which node runs on which device, why, and what is predicted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cost_recorder.h"
#include "apps/common/counted.h"
#include "apps/common/terminal.h"
#include "apps/io/file.h"
#include "apps/placement/report.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/signature.h"

namespace tagflow::apps {
namespace {

struct PlaceOptions {
  SignatureOptions signature;
  int measure = 0;  // runs
  std::string svg;
  bool json = false;
};

// Runs the graph, lets the session learn from that, and runs it as it is
// placed then.
Result<MeasuredRuns> measure_runs(const Prepared& prepared, int runs) {
  actors::CostRecorder recorder(prepared.session->devices());
  actors::RunOptions watched;
  watched.observer = &recorder;
  for (int i = 0; i < runs; ++i)
    TAGFLOW_RETURN_IF_ERROR(
        prepared.session
            ->run(prepared.feeds, prepared.fetches, prepared.targets, watched)
            .status());
  prepared.session->learn(recorder.costs());
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    actors::RunStats stats;
    TAGFLOW_RETURN_IF_ERROR(prepared.session
                                ->run(prepared.feeds, prepared.fetches,
                                      prepared.targets, {}, &stats)
                                .status());
    seconds.push_back(stats.seconds);
  }
  std::ranges::sort(seconds);
  return MeasuredRuns{runs, seconds[seconds.size() / 2] * 1e6};
}

Result<PlacementReport> explain_placement(const Prepared& prepared,
                                          const PlaceOptions& options) {
  std::optional<MeasuredRuns> measured;
  if (options.measure > 0) {
    TAGFLOW_ASSIGN(measured, measure_runs(prepared, options.measure));
  }
  std::vector<std::string> feeds;
  for (const auto& [port, value] : prepared.feeds) feeds.push_back(port);
  TAGFLOW_ASSIGN(
      const actors::Distribution distribution,
      prepared.session->explain(feeds, prepared.fetches, prepared.targets));
  TAGFLOW_ASSIGN(PlacementReport report,
                 report_placement(distribution, prepared.session->devices()));
  report.measured = measured;
  report.notes.insert(
      report.notes.begin(),
      measured ? fmt::format("times are those of {}",
                             counted(size_t(measured->runs), "run"))
               : "times are estimates from shapes; --measure takes them");
  return report;
}

Failure place_graph(const PlaceOptions& options) {
  const Prepared prepared =
      prepare(options.signature,
              options.measure > 0 ? Purpose::kRunAll : Purpose::kLook);
  if (prepared.failure.exit_code != ExitCode::kOk) return prepared.failure;
  if (!options.svg.empty()) {
    Status status = io::check_writable(options.svg);
    if (!status.ok()) return run_time_error(std::move(status));
  }
  const Result<PlacementReport> report = explain_placement(prepared, options);
  if (!report.ok()) return run_time_error(report.status());
  print_text(options.json ? format_placement_json(*report)
                          : format_placement(*report));
  if (options.svg.empty()) return {};
  const Result<std::string> picture = draw::to_svg(make_schedule(*report));
  Status written =
      picture.ok() ? io::write_file(options.svg, *picture) : picture.status();
  return written.ok() ? Failure() : run_time_error(std::move(written));
}

}  // namespace

void add_place_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<PlaceOptions>();
  CLI::App* place = app.add_subcommand(
      "place", "say which node runs on which device, and why");
  add_signature_options(*place, options->signature);
  make_values_optional(*place);
  constexpr int kMaxRuns = 1'000'000;
  place
      ->add_option("--measure", options->measure,
                   "run the graph so often, place it by what its nodes took, "
                   "and run it so often again")
      ->check(CLI::Range(1, kMaxRuns))
      ->type_name("RUNS");
  place
      ->add_option("--svg", options->svg,
                   "draw the simulated run: what runs where, and when")
      ->type_name("FILE");
  place->add_flag("--json", options->json,
                  "print one JSON object; errors stay text on stderr");
  place->callback(
      [options, &exit_code] { exit_code = report(place_graph(*options)); });
}

}  // namespace tagflow::apps
