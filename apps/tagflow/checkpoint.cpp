// tagflow checkpoint: lists, prints, compares and converts files of tensors.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/shared/io/file.h"
#include "apps/shared/io/json_tensor.h"
#include "apps/shared/io/npy.h"
#include "apps/shared/program/command_line.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/checkpoint/convert.h"
#include "apps/tagflow/checkpoint/difference.h"
#include "apps/tagflow/commands.h"
#include "apps/tagflow/model/results.h"
#include "devices/files/tensor_file.h"

namespace tagflow::apps {
namespace {

struct CheckpointOptions {
  std::string path, other, name, out;
  double tolerance = 0;
  int shards = 1;
  bool json = false;
  bool all = false;
};

// Warns if a folder's newest checkpoint is damaged, and another is used.
Result<std::unique_ptr<checkpoint::TensorFile>> open_file(
    const std::string& path) {
  auto file = checkpoint::open_tensor_file(path);
  if (!file.ok()) return file;
  for (const auto& [prefix, what] : (*file)->damaged())
    spdlog::warn("{}; \"{}\" is used instead", what, (*file)->path());
  return file;
}

std::vector<int64_t> dims_of(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

// --- ls ----------------------------------------------------------------------

std::string list_text(const checkpoint::TensorFile& file) {
  size_t name_width = 0, type_width = 0;
  uint64_t bytes = 0;
  for (const checkpoint::TensorInfo& info : file.tensors()) {
    name_width = std::max(name_width, printable_name(info.name).size());
    type_width = std::max(type_width, info.type_text().size());
    bytes += info.bytes;
  }
  name_width = column_width(name_width);
  type_width = column_width(type_width);
  std::string text;
  for (const checkpoint::TensorInfo& info : file.tensors()) {
    text +=
        fmt::format("{:<{}}  {:<{}}  {:>12} bytes", printable_name(info.name),
                    name_width, info.type_text(), type_width, info.bytes);
    if (file.num_shards() > 1)
      text += info.shard < 0 ? "  in several shards"
                             : fmt::format("  in shard {}", info.shard);
    if (info.slices > 0) text += fmt::format("  {} slices", info.slices);
    text += "\n";
  }
  return text + fmt::format("{} tensors, {} bytes, {} of {} {}\n",
                            file.tensors().size(), bytes, file.format(),
                            file.num_shards(),
                            file.num_shards() == 1 ? "shard" : "shards");
}

std::string list_json(const checkpoint::TensorFile& file) {
  nlohmann::ordered_json root = {{"path", file.path()},
                                 {"format", file.format()},
                                 {"shards", file.num_shards()},
                                 {"tensors", nlohmann::json::array()}};
  for (const checkpoint::TensorInfo& info : file.tensors()) {
    nlohmann::ordered_json tensor = {{"name", info.name},
                                     {"dtype", info.dtype},
                                     {"shape", dims_of(info.shape)},
                                     {"bytes", info.bytes},
                                     {"slices", info.slices}};
    tensor["shard"] = nullptr;
    if (info.shard >= 0) tensor["shard"] = info.shard;
    root["tensors"].push_back(std::move(tensor));
  }
  // A name may have any characters.
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

Failure list_tensors(const CheckpointOptions& options) {
  const auto file = open_file(options.path);
  if (!file.ok()) return file_error(file.status());
  print_text(options.json ? list_json(**file) : list_text(**file));
  return {};
}

// --- cat ---------------------------------------------------------------------

// A file of the other kind could not be read again by its name.
Status check_extension(const CheckpointOptions& options, const Tensor& tensor) {
  const bool is_text = tensor.dtype() == DataType::kString;
  if (!options.out.ends_with(is_text ? ".npy" : ".json")) return {};
  return invalid_argument(
      "[--out] tensor \"{}\" is {}, which is written to a {} file: \"{}\" "
      "should "
      "end so",
      options.name, tensor.describe(), is_text ? ".json" : ".npy", options.out);
}

Failure print_tensor(const CheckpointOptions& options) {
  const auto file = open_file(options.path);
  if (!file.ok()) return file_error(file.status());
  const auto tensor = (*file)->read(options.name);
  if (!tensor.ok()) return file_error(tensor.status());
  if (!options.out.empty()) {
    Status fits = check_extension(options, *tensor);
    if (!fits.ok()) return usage_error(std::move(fits));
    return file_error(
        tensor->dtype() == DataType::kString
            ? io::write_file(options.out, io::format_string_tensor(*tensor))
            : io::write_npy(options.out, *tensor));
  }
  const FetchName name{options.name, ""};
  const Shape shape = tensor->shape();
  print_text(
      options.json
          ? fmt::format(
                R"({{"name": {}, "dtype": "{}", "shape": [{}], "value": {}}})"
                "\n",
                io::json_string(options.name), dtype_name(tensor->dtype()),
                fmt::join(shape.dims(), ", "), io::format_json_literal(*tensor))
          : format_results({&name, 1}, {&*tensor, 1}));
  return {};
}

// --- diff --------------------------------------------------------------------

std::string difference_json(const TensorDifference& difference) {
  nlohmann::ordered_json root = {{"name", difference.name}};
  root["first"] = nullptr;
  root["second"] = nullptr;
  if (!difference.a.empty()) root["first"] = difference.a;
  if (!difference.b.empty()) root["second"] = difference.b;
  root["elements"] = difference.elements.count;
  root["most"] = difference.elements.most;  // null if it is infinite
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Differences are not errors of the program: they are printed, not logged.
ExitCode compare(const CheckpointOptions& options) {
  const auto a = open_file(options.path);
  if (!a.ok()) return report(file_error(a.status()));
  const auto b = open_file(options.other);
  if (!b.ok()) return report(file_error(b.status()));
  const auto differences = compare_files(**a, **b, options.tolerance,
                                         options.all ? "" : "_tagflow/");
  if (!differences.ok()) return report(file_error(differences.status()));
  for (const TensorDifference& difference : *differences)
    print_text(
        (options.json ? difference_json(difference) : difference.to_string()) +
        "\n");
  return differences->empty() ? ExitCode::kOk : ExitCode::kRunTimeError;
}

// --- convert -----------------------------------------------------------------

Failure convert_file(const CheckpointOptions& options) {
  Status target = check_target(options.other);
  if (!target.ok()) return usage_error(std::move(target));
  if (checkpoint::is_safetensors_path(options.other) && options.shards > 1)
    return usage_error(
        invalid_argument("[--shards] a .safetensors file has one shard"));
  const auto file = open_file(options.path);
  if (!file.ok()) return file_error(file.status());
  return file_error(convert(**file, options.other, options.shards));
}

CLI::Option* add_path(CLI::App& app, const char* name, std::string& path) {
  return app
      .add_option(name, path,
                  "a bundle's prefix, a folder of checkpoints, or a "
                  ".safetensors file")
      ->required()
      ->type_name("PATH");
}

}  // namespace

void add_checkpoint_command(CLI::App& app, ExitCode& exit_code) {
  auto options = std::make_shared<CheckpointOptions>();
  CLI::App* sub = app.add_subcommand(
      "checkpoint", "list, print, compare and convert files of tensors");
  sub->require_subcommand(1);
  append_to_footer(
      *sub,
      "Files are TensorFlow's checkpoints (V2), named by their prefix, or by "
      "their\nfolder, of which the newest whole one is taken; and .safetensors "
      "files.\n");

  CLI::App* ls = sub->add_subcommand("ls", "list the tensors");
  add_path(*ls, "path", options->path);
  ls->add_flag("--json", options->json, "one JSON object");
  ls->callback(
      [options, &exit_code] { exit_code = report(list_tensors(*options)); });

  CLI::App* cat = sub->add_subcommand("cat", "print a tensor");
  add_path(*cat, "path", options->path);
  cat->add_option("name", options->name, "the tensor's name")
      ->required()
      ->type_name("NAME");
  cat->add_flag("--json", options->json, "one JSON object");
  add_output_option(*cat, "--out", options->out,
                    "write it to a .npy file instead (strings: .json)");
  cat->callback(
      [options, &exit_code] { exit_code = report(print_tensor(*options)); });

  CLI::App* diff = sub->add_subcommand(
      "diff", "list what differs; the exit code is 1 if something does");
  add_path(*diff, "first", options->path);
  add_path(*diff, "second", options->other);
  diff->add_option("--tolerance", options->tolerance,
                   "numbers that differ by no more are equal")
      ->check(CLI::NonNegativeNumber)
      ->type_name("NUMBER");
  diff->add_flag("--all", options->all,
                 "compare also what a run needs to go on, such as the step, "
                 "whose names begin with _tagflow/");
  diff->add_flag("--json", options->json, "one JSON object a line");
  diff->callback([options, &exit_code] { exit_code = compare(*options); });

  CLI::App* convert = sub->add_subcommand(
      "convert", "write the tensors in another format, or in other shards");
  add_path(*convert, "in", options->path);
  convert
      ->add_option("out", options->other,
                   "a .safetensors file, or the prefix of a bundle")
      ->required()
      ->type_name("OUT");
  convert->add_option("--shards", options->shards, "of a bundle")
      ->check(CLI::Range(1, 1000));
  convert->callback(
      [options, &exit_code] { exit_code = report(convert_file(*options)); });
}

}  // namespace tagflow::apps
