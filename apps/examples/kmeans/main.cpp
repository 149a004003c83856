// kmeans: clusters the pictures of Fashion-MNIST. One graph, one run: its
// while_loop goes on until no picture changes its cluster.
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "apps/examples/kmeans/graph.h"
#include "apps/examples/kmeans/progress.h"
#include "apps/examples/kmeans/reference.h"
#include "apps/examples/kmeans/report.h"
#include "apps/shared/io/file.h"
#include "apps/shared/io/image_set.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/program.h"
#include "apps/shared/program/terminal.h"
#include "apps/shared/program/trace.h"
#include "devices/device_registry.h"

namespace {

using namespace tagflow;        // NOLINT: a main file
using namespace tagflow::apps;  // NOLINT
namespace fs = std::filesystem;

struct Options {
  std::string data = io::kFashionMnist;
  std::string out = "out/kmeans";
  int64_t clusters = 10;
  int64_t points = 0;  // 0: all
  int64_t max_iterations = 300;
  uint64_t seed = 1;
  int workers = 0;
  int shards = 1;
  bool check = false;
  bool json = false;
};

struct Data {
  Tensor images;  // uint8 [points, features]
  Tensor labels;  // uint8 [points]
  int side = 0;   // of a picture
};

Result<Data> load_data(const Options& options) {
  TAGFLOW_ASSIGN(
      const io::ImageSet set,
      io::read_image_set(options.data, io::ImagePart::kTrain, options.points));
  Data data;
  data.side = int(set.images.dim(1));
  TAGFLOW_ASSIGN(
      data.images,
      set.images.reshaped({set.images.dim(0), int64_t{data.side} * data.side}));
  data.labels = set.labels;
  return data;
}

Status write_files(const fs::path& folder, const Data& data,
                   const std::string& report, const kmeans::Solution& solution,
                   const actors::Trace& trace) {
  TAGFLOW_RETURN_IF_ERROR(
      io::write_png(folder / "centroids.png",
                    kmeans::draw_centroids(solution.centroids, data.side)));
  TAGFLOW_RETURN_IF_ERROR(io::write_file(folder / "report.md", report));
  return write_trace(trace, folder / "trace.json");
}

void print_results(const Options& options, const kmeans::Solution& solution,
                   double purity, double seconds) {
  if (options.json) {
    print_text(
        fmt::format("{{\"trips\": {}, \"converged\": {}, \"purity\": {}, "
                    "\"inertia\": {}, \"seconds\": {}}}\n",
                    solution.trips, solution.changed == 0, purity,
                    solution.inertia, seconds));
    return;
  }
  print_text(
      fmt::format("trips: {}{}\npurity: {:.4f}\ninertia: {:.6g}\n"
                  "seconds: {:.2f}\nwritten: {}/centroids.png, report.md, "
                  "trace.json, kmeans.log\n",
                  solution.trips,
                  solution.changed == 0 ? "" : " (stopped by --max-iterations)",
                  purity, solution.inertia, seconds, options.out));
}

Failure check(const kmeans::Problem& problem,
              const kmeans::Solution& solution) {
  const kmeans::Solution reference = kmeans::solve_by_eigen(problem);
  spdlog::info("plain Eigen took {} trips", reference.trips);
  Status status = kmeans::check_equal(problem, solution, reference);
  if (!status.ok()) return run_time_error(std::move(status));
  spdlog::info("the same centroids and assignments as in plain Eigen");
  return {};
}

// spdlog goes to a file, too.
Status log_to(const fs::path& path) {
  TAGFLOW_RETURN_IF_ERROR(io::write_file(path, ""));
  auto sink =
      std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
  sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  spdlog::default_logger()->sinks().push_back(std::move(sink));
  return {};
}

Failure cluster(const Options& options) {
  Result<Data> data = load_data(options);
  if (!data.ok()) {
    Failure failure = file_error(std::move(data).status());
    if (failure.exit_code == ExitCode::kMissingData) {
      spdlog::info(
          "the data is Debian's package dataset-fashion-mnist; "
          "--data names another folder");
    }
    return failure;
  }
  Status status = io::make_folder(options.out);
  if (status.ok()) status = log_to(fs::path(options.out) / "kmeans.log");
  if (!status.ok()) return run_time_error(std::move(status));

  const auto style = is_terminal() ? kmeans::ProgressStyle::kBar
                                   : kmeans::ProgressStyle::kLines;
  status = kmeans::register_progress_op(style);
  if (!status.ok()) return run_time_error(std::move(status));
  Result<Tensor> start =
      kmeans::draw_start(data->images, options.clusters, options.seed);
  if (!start.ok()) return usage_error(std::move(start).status());
  const kmeans::Problem problem{data->images, std::move(start).value(),
                                options.max_iterations};
  actors::SessionOptions session;
  session.workers = options.workers;
  session.devices = fmt::format("cpu:{}", options.shards);
  spdlog::info("{} pictures of {} x {}, {} clusters", data->images.dim(0),
               data->side, data->side, options.clusters);

  actors::Trace trace;
  actors::RunStats stats;
  Result<kmeans::Solution> solution =
      kmeans::solve_by_graph(problem, options.shards, session, &trace, &stats);
  kmeans::finish_progress(style);
  if (!solution.ok()) return run_time_error(std::move(solution).status());

  const double purity = kmeans::purity(*solution, data->labels);
  spdlog::info("{} trips, purity {:.4f}, {:.3f} s", solution->trips, purity,
               stats.seconds);
  status = write_files(
      options.out, *data,
      kmeans::format_report(problem, *solution, data->labels, stats), *solution,
      trace);
  if (!status.ok()) return run_time_error(std::move(status));
  print_results(options, *solution, purity, stats.seconds);
  return options.check ? check(problem, *solution) : Failure();
}

ExitCode run(int argc, char** argv) {
  Options options;
  CLI::App app("Clusters Fashion-MNIST in one run of one graph.", "kmeans");
  app.set_version_flag("--version", TAGFLOW_VERSION);
  app.add_option("-k,--clusters", options.clusters, "clusters")
      ->check(CLI::Range(1, 1000));
  app.add_option("--data", options.data, "folder of the IDX files")
      ->type_name("DIR");
  app.add_option("--points", options.points, "use the first N; 0: all")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--max-iterations", options.max_iterations,
                 "end after so many trips")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", options.seed, "seed that draws the first centroids");
  add_workers_option(app, options.workers);
  app.add_option("--shards", options.shards,
                 "split the points over so many CPU devices")
      ->check(CLI::Range(1, devices::kMaxDevicesOfType));
  app.add_option("--out", options.out, "folder for the results")
      ->type_name("DIR");
  app.add_flag("--check", options.check,
               "compare with the same algorithm in plain Eigen");
  app.add_flag("--json", options.json, "print results as one JSON object");
  ExitCode exit_code = ExitCode::kOk;
  app.callback([&] { exit_code = report(cluster(options)); });
  return parse_and_run(app, argc, argv, exit_code);
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, run); }
