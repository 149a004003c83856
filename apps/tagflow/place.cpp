// tagflow place: prints which node runs on which device, why, and predicted
// times.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/watch/cost_recorder.h"
#include "apps/shared/io/file.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/runs/cluster_connection.h"
#include "apps/shared/runs/interrupt.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/model/cost_file.h"
#include "apps/tagflow/placement/report.h"
#include "apps/tagflow/signature.h"
#include "graph/counted.h"
#include "graph/status_text.h"

namespace tagflow::apps {
namespace {

struct PlaceOptions {
  SignatureOptions signature;
  int measure = 0;  // runs
  std::string save;
  std::string svg;
  bool json = false;
};

// Runs the graph, lets the session measure costs, and runs it again with the
// new placement. `prepared` receives the costs.
Result<MeasuredRuns> measure_runs(Prepared& prepared, int runs,
                                  const actors::CancelToken& cancel) {
  const auto recorder = std::make_shared<actors::CostRecorder>(
      prepared.session->devices(), prepared.costs);
  prepared.session.keep(recorder);
  actors::RunOptions plain;
  plain.cancel = cancel;
  actors::RunOptions watched = plain;
  watched.observer = recorder.get();
  for (int i = 0; i < runs; ++i)
    TAGFLOW_RETURN_IF_ERROR(
        prepared.session
            ->run(prepared.feeds, prepared.fetches, prepared.targets, watched)
            .status());
  prepared.costs = recorder->costs();
  TAGFLOW_RETURN_IF_ERROR(prepared.session->learn(prepared.costs));
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    actors::RunStats stats;
    TAGFLOW_RETURN_IF_ERROR(prepared.session
                                ->run(prepared.feeds, prepared.fetches,
                                      prepared.targets, plain, &stats)
                                .status());
    seconds.push_back(stats.seconds);
  }
  std::ranges::sort(seconds);
  return MeasuredRuns{runs, seconds[seconds.size() / 2] * 1e6};
}

Result<PlacementReport> explain_placement(
    const Prepared& prepared, const std::optional<MeasuredRuns>& measured,
    const SignatureOptions& options) {
  std::vector<std::string> feeds;
  for (const auto& [port, value] : prepared.feeds) feeds.push_back(port);
  TAGFLOW_ASSIGN(
      const actors::Distribution distribution,
      prepared.session->explain(feeds, prepared.fetches, prepared.targets));
  TAGFLOW_ASSIGN(
      PlacementReport report,
      report_placement(distribution, prepared.session->device_infos()));
  report.measured = measured;
  report.notes.insert(
      report.notes.begin(),
      measured ? fmt::format("times are those of {}",
                             counted(size_t(measured->runs), "run"))
      : prepared.has_costs
          ? "times are from the file of --costs, or estimates where it has none"
      : !options.costs.empty()
          ? "times are estimates from shapes, since the file of --costs has "
            "none of a node of this graph"
      // Workers are not measured.
      : !options.engine.cluster.empty()
          ? "times are estimates from shapes"
          : "times are estimates from shapes; --measure measures them");
  return report;
}

Failure place_graph(const PlaceOptions& options) {
  if (options.measure > 0) {
    Status usage =
        refuse_watching_cluster(options.signature.engine, "--measure");
    if (!usage.ok()) return usage_error(std::move(usage));
  }
  Prepared prepared =
      prepare(options.signature,
              options.measure > 0 ? Purpose::kRunAll : Purpose::kLook);
  if (prepared.failure.exit_code != ExitCode::kOk) return prepared.failure;
  Status distinct =
      check_distinct({{"--save", options.save}, {"--svg", options.svg}},
                     {{"GRAPH", options.signature.graph}});
  if (!distinct.ok()) return usage_error(std::move(distinct));
  for (const std::string& path : {options.svg, options.save}) {
    if (path.empty()) continue;
    Status status = io::check_writable(path);
    if (!status.ok()) return run_time_error(std::move(status));
  }
  std::optional<MeasuredRuns> measured;
  if (options.measure > 0) {
    const Interruptible interruptible;
    const Result<MeasuredRuns> runs =
        measure_runs(prepared, options.measure, interruptible.token());
    if (!runs.ok()) return interruptible.failure_of(runs.status());
    measured = *runs;
  }
  if (!options.save.empty()) {
    Status saved = write_costs(options.save, prepared.costs);
    if (!saved.ok()) return run_time_error(std::move(saved));
  }
  const Result<PlacementReport> report =
      explain_placement(prepared, measured, options.signature);
  if (!report.ok())
    return run_time_error(name_file(report.status(), options.signature.graph));
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
                   "run the graph so often, place it by the measured times of "
                   "its nodes, and run it so often again")
      ->check(CLI::Range(1, kMaxRuns))
      ->type_name("RUNS");
  add_output_option(*place, "--save", options->save,
                    "write the measured costs, for --costs")
      ->needs(place->get_option("--measure"));
  add_output_option(*place, "--svg", options->svg,
                    "draw the simulated run: what runs where, and when");
  place->add_flag("--json", options->json,
                  "print one JSON object; errors stay text on stderr");
  place->callback([options, &exit_code] {
    options->signature.engine.keeps_stdout = options->json;
    exit_code = report(place_graph(*options));
  });
}

}  // namespace tagflow::apps
