#include "apps/examples/train_images/data.h"

#include <algorithm>
#include <random>

#include "apps/examples/train_images/models.h"
#include "apps/shared/training/shuffle.h"

namespace tagflow::train_images {
namespace {

// The augmentation of an image: the shift in rows and columns, and whether it
// is mirrored.
struct Change {
  int64_t down = 0, right = 0;
  bool is_mirrored = false;
};

Change draw_change(std::mt19937_64& random) {
  constexpr int64_t kMostPixels = 2;
  const auto draw = [&random](int64_t low, int64_t high) {
    return low + int64_t(random() % uint64_t(high - low + 1));
  };
  const int64_t down = draw(-kMostPixels, kMostPixels);
  const int64_t right = draw(-kMostPixels, kMostPixels);
  return {down, right, draw(0, 1) == 1};
}

// Pixels from outside are black.
void copy_changed(const uint8_t* from, int64_t side, const Change& change,
                  uint8_t* to) {
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const int64_t row = y - change.down;
      int64_t column = x - change.right;
      if (change.is_mirrored) column = side - 1 - column;
      const bool is_inside =
          row >= 0 && row < side && column >= 0 && column < side;
      *to++ = is_inside ? from[row * side + column] : uint8_t{0};
    }
  }
}

// Uninitialised tensors for this many images and labels.
std::vector<Tensor> make_batch(const io::ImageSet& set, int64_t rows) {
  const int64_t side = set.images.dim(1);
  return {Tensor::make(DataType::kUInt8, {rows, side, side}),
          Tensor::make(DataType::kUInt8, {rows})};
}

}  // namespace

Result<io::ImageSet> read_pictures(const std::filesystem::path& folder,
                                   io::ImagePart part, int64_t limit) {
  TAGFLOW_ASSIGN(io::ImageSet set, io::read_image_set(folder, part, limit));
  const auto labels = set.labels.flat<uint8_t>();
  const auto largest = std::max_element(labels.begin(), labels.end());
  if (*largest >= kClasses)
    return invalid_argument(
        "[images] picture {} in \"{}\" has the label {}; labels are less than "
        "{}",
        largest - labels.begin(), folder.string(), int(*largest), kClasses);
  return set;
}

Result<TrainBatches> train_batches(io::ImageSet set, int64_t batch,
                                   uint64_t seed, bool is_augmented) {
  TAGFLOW_ASSIGN(auto made, training::ShuffledBatches::create(set.images.dim(0),
                                                              batch, seed));
  auto rows = std::make_shared<training::ShuffledBatches>(std::move(made));
  TrainBatches batches;
  batches.steps_per_epoch = rows->steps_per_epoch();
  batches.batch = [set = std::move(set), rows, seed,
                   is_augmented](int64_t step) -> Result<std::vector<Tensor>> {
    const int64_t side = set.images.dim(1), pixels = side * side;
    std::vector<Tensor> tensors = make_batch(set, rows->batch());
    auto* image = tensors[0].mutable_data<uint8_t>();
    auto* label = tensors[1].mutable_data<uint8_t>();
    std::seed_seq seeds{uint32_t(seed), uint32_t(seed >> 32U), uint32_t(step),
                        uint32_t(uint64_t(step) >> 32U)};
    std::mt19937_64 random(seeds);
    for (const int64_t row : rows->at(step)) {
      const uint8_t* from = set.images.data<uint8_t>() + row * pixels;
      if (is_augmented) {
        copy_changed(from, side, draw_change(random), image);
      } else {
        std::copy_n(from, pixels, image);
      }
      image += pixels;
      *label++ = set.labels.data<uint8_t>()[row];
    }
    return tensors;
  };
  return batches;
}

TestBatches test_batches(io::ImageSet set, int64_t batch) {
  const int64_t all = set.images.dim(0);
  TestBatches batches;
  batches.count = (all + batch - 1) / batch;
  batches.batch = [set = std::move(set), all,
                   batch](int64_t index) -> Result<std::vector<Tensor>> {
    const int64_t first = index * batch;
    const int64_t rows = std::min(batch, all - first);
    const int64_t pixels = set.images.dim(1) * set.images.dim(2);
    std::vector<Tensor> tensors = make_batch(set, rows);
    std::copy_n(set.images.data<uint8_t>() + first * pixels, rows * pixels,
                tensors[0].mutable_data<uint8_t>());
    std::copy_n(set.labels.data<uint8_t>() + first, rows,
                tensors[1].mutable_data<uint8_t>());
    return tensors;
  };
  return batches;
}

}  // namespace tagflow::train_images
