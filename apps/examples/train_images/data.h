// Batches of images.
#pragma once

#include <memory>
#include <vector>

#include "apps/shared/io/image_set.h"
#include "apps/shared/training/trainer.h"

namespace tagflow::train_images {

// read_image_set() that returns InvalidArgument unless all labels are below
// kClasses.
Result<io::ImageSet> read_pictures(const std::filesystem::path& folder,
                                   io::ImagePart part, int64_t limit = 0);

// The batches of a training: images and labels, shuffled by the seed. With
// `is_augmented`, half of the images are mirrored, and all are shifted by up to
// two pixels, depending on seed and step. Returns InvalidArgument if the set
// does not fill a batch.
struct TrainBatches {
  training::BatchFn batch;
  int64_t steps_per_epoch = 0;
};
Result<TrainBatches> train_batches(io::ImageSet set, int64_t batch,
                                   uint64_t seed, bool is_augmented);

// The whole set in its order, in batches of `batch`; the last one may be
// smaller.
struct TestBatches {
  training::BatchFn batch;
  int64_t count = 0;
};
TestBatches test_batches(io::ImageSet set, int64_t batch);

}  // namespace tagflow::train_images
