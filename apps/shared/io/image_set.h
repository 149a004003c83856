// Data sets of images and their labels, in the file format of MNIST.
#pragma once

#include <cstdint>
#include <filesystem>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::io {

// Where Debian's package dataset-fashion-mnist has its files.
inline constexpr const char* kFashionMnist =
    "/usr/share/datasets/fashion-mnist";

struct ImageSet {
  Tensor images;  // uint8 [count, side, side]
  Tensor labels;  // uint8 [count]
};

// FOLDER/train-images-idx3-ubyte.gz and its labels, or those of "t10k".
enum class ImagePart : uint8_t { kTrain, kTest };

// The first images, at most `limit` of them; 0: all. Returns errors of
// read_idx(), and InvalidArgument if the numbers of images and labels
// differ, images are not square, or there are none. Thread-safe.
Result<ImageSet> read_image_set(const std::filesystem::path& folder,
                                ImagePart part, int64_t limit = 0);

}  // namespace tagflow::io
