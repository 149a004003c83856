#include "apps/shared/io/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/status_text.h"

namespace tagflow::io {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxElements = int64_t{1} << 31;
constexpr uint8_t kUnsignedBytes = 0x08;

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

Status fail(const fs::path& path, Code code, std::string_view what) {
  return error(code, "[idx] \"{}\" {}", path.string(), what);
}

// Fills `out` from the file.
Status read_exactly(gzFile file, const fs::path& path, std::span<char> out) {
  const int count = gzread(file, out.data(), unsigned(out.size()));
  if (count == int(out.size())) return {};
  return fail(path, Code::kDataLoss, count < 0 ? "is damaged" : "is cut short");
}

Result<Shape> read_shape(gzFile file, const fs::path& path) {
  std::array<char, 4> magic;
  TAGFLOW_RETURN_IF_ERROR(read_exactly(file, path, magic));
  if (magic[0] != 0 || magic[1] != 0) {
    return fail(path, Code::kInvalidArgument, "is not an IDX file");
  }
  if (uint8_t(magic[2]) != kUnsignedBytes) {
    return fail(path, Code::kInvalidArgument,
                "has elements that are not unsigned bytes");
  }
  std::vector<int64_t> dims;
  const int rank = uint8_t(magic[3]);
  for (int i = 0; i < rank; ++i) {
    std::array<char, 4> bytes;
    TAGFLOW_RETURN_IF_ERROR(read_exactly(file, path, bytes));
    uint32_t dim = 0;
    for (char byte : bytes) dim = dim << 8 | uint8_t(byte);
    dims.push_back(dim);
  }
  TAGFLOW_ASSIGN(Shape shape, Shape::make(dims));
  if (shape.num_elements() > kMaxElements) {
    return fail(path, Code::kResourceExhausted, "has more than 2 GiB");
  }
  return shape;
}

Result<Tensor> read_elements(const fs::path& path) {
  if (!fs::exists(path)) {
    return error(Code::kNotFound, "[idx] there is no file \"{}\"",
                 path.string());
  }
  const GzFile file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    return fail(path, Code::kPermissionDenied, "cannot be opened");
  }
  TAGFLOW_ASSIGN(const Shape shape, read_shape(file.get(), path));

  // In pieces: a header may promise more than the file has.
  constexpr int64_t kPiece = int64_t{1} << 24;
  std::vector<char> bytes;
  const int64_t total = shape.num_elements();
  while (int64_t(bytes.size()) < total) {
    const size_t before = bytes.size();
    bytes.resize(before + size_t(std::min(kPiece, total - int64_t(before))));
    TAGFLOW_RETURN_IF_ERROR(
        read_exactly(file.get(), path, std::span(bytes).subspan(before)));
  }
  char more = 0;
  if (gzread(file.get(), &more, 1) != 0) {
    return fail(path, Code::kInvalidArgument,
                "has more bytes than its header says, or is damaged");
  }
  TAGFLOW_ASSIGN(Tensor tensor, Tensor::allocate(DataType::kUInt8, shape));
  if (total > 0) std::memcpy(tensor.mutable_raw(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

Result<Tensor> read_idx(const fs::path& path) {
  Result<Tensor> tensor = read_elements(path);
  if (tensor.ok()) return tensor;
  return name_file(std::move(tensor).status(), path.string());
}

}  // namespace tagflow::io
