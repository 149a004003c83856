#include "graph/file/foreign_file.h"

#include <algorithm>
#include <string_view>

namespace tagflow::graph {
namespace {

using namespace std::literals;

constexpr const char* kExport =
    R"(load it in Python, write it by model.export("DIR"), and name DIR)";

std::string describe_zip(std::string_view name, std::string_view bytes) {
  // The names of members are near the front, or in the list at the end.
  constexpr size_t kNear = 4096;
  const auto has = [&](std::string_view member) {
    return bytes.substr(0, kNear).find(member) != bytes.npos ||
           bytes.substr(bytes.size() - std::min(bytes.size(), kNear))
                   .find(member) != bytes.npos;
  };
  if (name.ends_with(".keras") || has("model.weights.h5"))
    return "a Keras archive; "s + kExport;
  if (name.ends_with(".npz") || has(".npy"))
    return "a NumPy archive, which has values and no graph";
  if (has("/data.pkl"))
    return "a model of PyTorch, whose graphs tagflow does not read";
  return "a zip archive; unpack it, and name the file or folder that was "
         "packed";
}

// The first field, the version, is 3 or a little more, and the next ones are
// texts or the graph: see ModelProto. A SavedModel begins likewise, but its
// version is 1; other messages of ours begin with no varint.
bool is_onnx(std::string_view bytes) {
  constexpr auto kNext = "\x12\x1a\x22\x2a\x32\x3a\x42"sv;
  return bytes.size() > 2 && bytes[0] == '\x08' && bytes[1] >= 3 &&
         bytes[1] < 64 && kNext.find(bytes[2]) != kNext.npos;
}

// The size of the header comes first.
bool is_safetensors(std::string_view bytes) {
  return bytes.size() > 9 && bytes.substr(5, 4) == "\0\0\0{"sv;
}

// An offset comes first, which is small.
bool is_flat_model(std::string_view bytes) {
  return bytes.size() > 8 && bytes.substr(2, 6) == "\0\0TFL3"sv;
}

}  // namespace

std::string describe_foreign_file(std::string_view name,
                                  std::string_view bytes) {
  if (bytes.starts_with("PK\x03\x04")) return describe_zip(name, bytes);
  if (bytes.starts_with("\x89HDF\r\n"))
    return "an HDF5 file, in which Keras keeps models; "s + kExport;
  if (is_flat_model(bytes))
    return "a model of TensorFlow Lite; name the SavedModel that it was "
           "converted from";
  if (is_onnx(bytes))
    return "an ONNX model, which tagflow does not read; name the SavedModel or "
           "GraphDef that it was exported from";
  if (is_safetensors(bytes))
    return "a safetensors file, which has values and no graph; give it to "
           "--restore";
  if (bytes.starts_with("\x93NUMPY")) return "a NumPy array; give it to --feed";
  if (bytes.starts_with("\x1f\x8b"))
    return "compressed by gzip; unpack it first";
  if (bytes.starts_with("\x80\x02") || bytes.starts_with("\x80\x04") ||
      bytes.starts_with("\x80\x05"))
    return "a pickle of Python, which tagflow does not read";
  return "";
}

}  // namespace tagflow::graph
