// tagflow partition: writes each device's partition of a graph, and a picture.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/shared/draw/svg.h"
#include "apps/shared/io/file.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/placement/cut.h"
#include "apps/tagflow/signature.h"
#include "graph/status_text.h"

namespace tagflow::apps {
namespace {

struct PartitionCommand {
  SignatureOptions signature;
  std::string out;
  bool json = false;
};

// Makes the folder, and checks that files can be written there.
Status check_folder(const std::filesystem::path& folder) {
  TAGFLOW_RETURN_IF_ERROR(io::make_folder(folder).with_prefix("[--out] "));
  return io::check_writable(folder / kPartitionsPicture)
      .with_prefix("[--out] ");
}

// The files are useful without a picture, which cannot be made for large
// graphs.
Status draw_partitions(const actors::Distribution& distribution,
                       std::span<const graph::DeviceInfo> devices,
                       const std::filesystem::path& folder) {
  TAGFLOW_ASSIGN(const draw::Drawing drawing, draw_cut(distribution, devices));
  const Result<draw::Layout> layout = draw::lay_out(drawing);
  if (!layout.ok()) {
    spdlog::warn("there is no picture: {}", layout.status().message());
    return {};
  }
  return io::write_file(folder / kPartitionsPicture,
                        draw::to_svg(drawing, *layout));
}

Status cut_graph(const Prepared& prepared, const PartitionCommand& command) {
  std::vector<std::string> feeds;
  for (const auto& [port, value] : prepared.feeds) feeds.push_back(port);
  const Result<actors::Distribution> explained =
      prepared.session->explain(feeds, prepared.fetches, prepared.targets);
  if (!explained.ok())
    return name_file(explained.status(), command.signature.graph);
  const actors::Distribution& distribution = *explained;
  const auto devices = prepared.session->device_infos();
  TAGFLOW_ASSIGN(const CutReport cut, report_cut(distribution, devices));
  TAGFLOW_RETURN_IF_ERROR(write_partitions(distribution, cut, command.out));
  TAGFLOW_RETURN_IF_ERROR(draw_partitions(distribution, devices, command.out));
  print_text(command.json ? format_cut_json(cut) : format_cut(cut));
  return {};
}

Failure partition_graph(const PartitionCommand& command) {
  const Prepared prepared = prepare(command.signature, Purpose::kLook);
  if (prepared.failure.exit_code != ExitCode::kOk) return prepared.failure;
  Status status = check_folder(command.out);
  if (status.ok()) status = cut_graph(prepared, command);
  return status.ok() ? Failure() : run_time_error(std::move(status));
}

}  // namespace

void add_partition_command(CLI::App& app, ExitCode& exit_code) {
  auto command = std::make_shared<PartitionCommand>();
  CLI::App* partition = app.add_subcommand(
      "partition", "cut a graph into one per device, and draw them");
  add_signature_options(*partition, command->signature);
  make_values_optional(*partition);
  add_output_option(*partition, "--out", command->out,
                    "the folder for a GraphDef per device, named after it, a "
                    "GraphDef per function that runs in frames of its own "
                    "(..._body_N_NAME.pb, N is \"body\" of its _Calls), and "
                    "partitions.svg, which needs Graphviz. Files of an earlier "
                    "run are replaced",
                    "DIR")
      ->required();
  partition->add_flag("--json", command->json,
                      "print one JSON object; errors stay text on stderr");
  partition->callback(
      [command, &exit_code] { exit_code = report(partition_graph(*command)); });
}

}  // namespace tagflow::apps
