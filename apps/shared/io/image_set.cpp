#include "apps/shared/io/image_set.h"

#include <algorithm>
#include <string>
#include <vector>

#include "apps/shared/io/idx.h"

namespace tagflow::io {
namespace {

Tensor first_rows(const Tensor& tensor, int64_t rows) {
  if (rows == tensor.dim(0)) return tensor;
  const Shape all = tensor.shape();
  std::vector<int64_t> dims(all.dims().begin(), all.dims().end());
  dims[0] = rows;
  const Shape shape(dims);
  return Tensor::of<uint8_t>(
      shape, tensor.flat<uint8_t>().first(size_t(shape.num_elements())));
}

}  // namespace

Result<ImageSet> read_image_set(const std::filesystem::path& folder,
                                ImagePart part, int64_t limit) {
  const std::string name = part == ImagePart::kTrain ? "train" : "t10k";
  TAGFLOW_ASSIGN(const Tensor images,
                 read_idx(folder / (name + "-images-idx3-ubyte.gz")));
  TAGFLOW_ASSIGN(const Tensor labels,
                 read_idx(folder / (name + "-labels-idx1-ubyte.gz")));
  if (images.rank() != 3 || labels.rank() != 1 ||
      images.dim(0) != labels.dim(0) || images.dim(1) != images.dim(2) ||
      images.num_elements() == 0)
    return invalid_argument(
        "[images] the images \"{}\" of \"{}\", {}, and the labels, {}, do not "
        "match",
        name, folder.string(), images.describe(), labels.describe());
  const int64_t rows =
      limit == 0 ? images.dim(0) : std::min(limit, images.dim(0));
  return ImageSet{first_rows(images, rows), first_rows(labels, rows)};
}

}  // namespace tagflow::io
