#include "apps/tagflow/checkpoint/convert.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "devices/files/bundle_writer.h"
#include "devices/files/safetensors.h"
#include "devices/quantity.h"
#include "graph/file/object_graph.h"
#include "graph/op_registry.h"
#include "graph/status_text.h"

namespace tagflow::apps {
namespace {

Status convert_to_bundle(const checkpoint::TensorFile& from,
                         const std::string& prefix, int shards) {
  TAGFLOW_ASSIGN(const auto writer,
                 checkpoint::BundleWriter::create(prefix, shards, {}));
  for (const checkpoint::TensorInfo& info : from.tensors()) {
    TAGFLOW_ASSIGN(const Tensor tensor, from.read(info.name));
    TAGFLOW_RETURN_IF_ERROR(writer->add(info.name, tensor));
  }
  TAGFLOW_RETURN_IF_ERROR(writer->finish());
  return writer->publish();
}

Status convert_to_safetensors(const checkpoint::TensorFile& from,
                              const std::string& path) {
  std::vector<checkpoint::SafetensorsItem> items;
  for (const checkpoint::TensorInfo& info : from.tensors()) {
    // The format has no strings, and its readers do not know object graphs.
    if (info.name == graph::kObjectGraphKey) {
      spdlog::info(
          "\"{}\" is left out: --restore reads \"{}\", but "
          "tf.train.Checkpoint finds no variables in what is made of it",
          info.name, path);
      continue;
    }
    const auto dtype = dtype_from_name(info.dtype);
    if (!dtype.ok())
      return error(Code::kUnimplemented,
                   "[checkpoint] tensor \"{}\" of \"{}\" is {}, a type that "
                   "cannot be read",
                   info.name, from.path(), info.type_text());
    items.push_back({info.name, *dtype, info.shape,
                     [&from, &info] { return from.read(info.name); }});
  }
  return checkpoint::write_safetensors(path, std::move(items), {});
}

constexpr std::string_view kSafetensors = ".safetensors";

// ".safetensor", ".safe", ".SafeTensors".
bool is_nearly_safetensors(const std::string& extension) {
  constexpr size_t kLeast = 3;
  return !graph::nearest_name(extension, {std::string(kSafetensors)}).empty() ||
         (extension.size() > kLeast && kSafetensors.starts_with(extension));
}

bool is_of_other_format(std::string_view extension) {
  constexpr std::string_view kOthers[] = {
      ".bin", ".gguf", ".h5", ".hdf5",  ".json", ".keras", ".meta",
      ".npy", ".npz",  ".pb", ".pbtxt", ".pkl",  ".pt",    ".pth"};
  return std::ranges::find(kOthers, extension) != std::end(kOthers);
}

}  // namespace

Status check_target(const std::string& path) {
  if (checkpoint::is_safetensors_path(path)) return {};
  const std::filesystem::path name = path;
  const std::string extension = devices::lower_case(name.extension().string());
  const auto with = [&](std::string_view other) {
    return std::filesystem::path(name).replace_extension(other).string();
  };
  if (is_nearly_safetensors(extension))
    return invalid_argument(
        "[checkpoint] \"{}\" would be the prefix of a bundle; did you mean "
        "\"{}\"?",
        path, with(kSafetensors));
  if (extension == ".index" || extension.starts_with(".data-"))
    return invalid_argument(
        "[checkpoint] \"{}\" would be the prefix of a bundle, whose files have "
        "such names; did you mean \"{}\"?",
        path, with(""));
  if (is_of_other_format(extension))
    return invalid_argument(
        "[checkpoint] {} files are not written: \"{}\" should end in {}, or be "
        "the prefix of a bundle, such as \"{}\"",
        extension, path, kSafetensors, with(""));
  return {};
}

Status convert(const checkpoint::TensorFile& from, const std::string& path,
               int shards) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown))
    return invalid_argument(
        "[checkpoint] \"{}\" is a folder; a bundle is named by a prefix, as "
        "\"{}\"",
        path, (std::filesystem::path(path) / "model.ckpt").string());
  Status status = checkpoint::is_safetensors_path(path)
                      ? convert_to_safetensors(from, path)
                      : convert_to_bundle(from, path, shards);
  return name_file(std::move(status), from.path());
}

}  // namespace tagflow::apps
