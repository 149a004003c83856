#include "apps/tagflow/checkpoint/convert.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <system_error>

#include "devices/files/bundle_writer.h"
#include "devices/files/safetensors.h"
#include "graph/file/object_graph.h"

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

}  // namespace

Status convert(const checkpoint::TensorFile& from, const std::string& path,
               int shards) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown))
    return invalid_argument(
        "[checkpoint] \"{}\" is a folder; a bundle is named by a prefix, as "
        "\"{}\"",
        path, (std::filesystem::path(path) / "model.ckpt").string());
  return checkpoint::is_safetensors_path(path)
             ? convert_to_safetensors(from, path)
             : convert_to_bundle(from, path, shards);
}

}  // namespace tagflow::apps
