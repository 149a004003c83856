#include "apps/examples/train_images/task.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

#include "apps/shared/io/file.h"
#include "tests/temp_path.h"

namespace tagflow::train_images {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the test.
struct TempFolder {
  fs::path path = testing::temp_path("train_images");
  TempFolder() { fs::remove_all(path); }
  ~TempFolder() { fs::remove_all(path); }
};

constexpr int64_t kSide = 12;

// A bright row for each kind, in noise.
io::ImageSet make_set(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  io::ImageSet set;
  set.images = Tensor::make(DataType::kUInt8, {count, kSide, kSide});
  set.labels = Tensor::make(DataType::kUInt8, {count});
  auto* pixel = set.images.mutable_data<uint8_t>();
  for (uint8_t& label : set.labels.mutable_flat<uint8_t>()) {
    label = uint8_t(random() % kClasses);
    for (int64_t i = 0; i < kSide * kSide; ++i)
      *pixel++ = uint8_t(random() % 64 + (i / kSide == label + 1 ? 160 : 0));
  }
  return set;
}

TaskOptions options_of(Model model) {
  return {.model = model,
          .batch = 32,
          .epochs = 6,
          .learning_rate = defaults_of(model).learning_rate,
          .seed = 3};
}

training::Outcome train(const TaskOptions& options, const fs::path& folder,
                        int64_t stop_at = 0) {
  auto task = make_task(options, make_set(320, 1), make_set(100, 2));
  REQUIRE_MESSAGE(task.ok(), task.status().to_string());
  actors::SessionOptions session_options;
  session_options.seed = options.seed;
  auto session = actors::Session::create(session_options);
  REQUIRE(session.ok());
  REQUIRE((*session)->extend(task->graph).ok());
  training::TrainerOptions trainer;
  trainer.checkpoints.save = folder.string();
  trainer.epochs = options.epochs;
  trainer.stop_at = stop_at;
  apps::OwnedSession owned(std::move(*session));
  return training::train(owned, task->trainee, trainer);
}

std::string read(const fs::path& file) {
  auto text = io::read_file(file);
  REQUIRE_MESSAGE(text.ok(), text.status().to_string());
  return std::move(text).value();
}

TEST_CASE("train_images: each model learns, and resumes to the same bits") {
  for (const Model model : kModels) {
    const TempFolder folder;
    const TaskOptions options = options_of(model);
    CAPTURE(defaults_of(model).name);
    const training::Outcome whole = train(options, folder.path / "whole");
    REQUIRE_MESSAGE(whole.failure.exit_code == apps::ExitCode::kOk,
                    whole.failure.status.to_string());
    CHECK(whole.step == 60);
    CHECK(whole.test[0] < 1);
    CHECK(whole.test[1] > 0.8f);
    train(options, folder.path / "part", 7);
    const training::Outcome part = train(options, folder.path / "part");
    CHECK(part.test == whole.test);
    CHECK(read(folder.path / "part/history.csv") ==
          read(folder.path / "whole/history.csv"));
    const std::string data = "model.ckpt-60.data-00000-of-00001";
    CHECK(read(folder.path / "part" / data) ==
          read(folder.path / "whole" / data));
  }
}

TEST_CASE("train_images: another seed trains to another result") {
  const TempFolder folder;
  TaskOptions options = options_of(Model::kMlp);
  const training::Outcome first = train(options, folder.path / "a", 5);
  options.seed = 4;
  const training::Outcome second = train(options, folder.path / "b", 5);
  CHECK(first.test != second.test);
}

TEST_CASE("train_images: augmented pictures are shifted or mirrored only") {
  const io::ImageSet set = make_set(64, 1);
  const auto plain = train_batches(set, 64, 1, false);
  const auto augmented = train_batches(set, 64, 1, true);
  REQUIRE(plain.ok());
  REQUIRE(augmented.ok());
  const auto before = plain->batch(1), after = augmented->batch(1);
  REQUIRE(before.ok());
  REQUIRE(after.ok());
  int mirrored = 0;
  for (int64_t i = 0; i < 64; ++i) {
    CHECK((*before)[1].flat<uint8_t>()[size_t(i)] ==
          (*after)[1].flat<uint8_t>()[size_t(i)]);
    const auto* from = (*before)[0].data<uint8_t>() + i * kSide * kSide;
    const auto* to = (*after)[0].data<uint8_t>() + i * kSide * kSide;
    // One of the fifty changes explains all of a picture's pixels.
    int fits = 0;
    for (int64_t change = 0; change < 50; ++change) {
      const int64_t down = change / 2 % 5 - 2, right = change / 10 - 2;
      const bool is_mirrored = change % 2 == 1;
      bool is_same = true;
      for (int64_t y = 0; y < kSide; ++y) {
        for (int64_t x = 0; x < kSide; ++x) {
          const int64_t row = y - down;
          const int64_t column =
              is_mirrored ? kSide - 1 - x + right : x - right;
          const bool is_inside =
              row >= 0 && row < kSide && column >= 0 && column < kSide;
          const int expected = is_inside ? from[row * kSide + column] : 0;
          is_same = is_same && to[y * kSide + x] == expected;
        }
      }
      fits += is_same ? 1 : 0;
      mirrored += is_same && is_mirrored ? 1 : 0;
    }
    CHECK(fits == 1);
  }
  CHECK(mirrored > 16);
  CHECK(mirrored < 48);
  const auto again = augmented->batch(1);
  REQUIRE(again.ok());
  CHECK(std::equal((*again)[0].flat<uint8_t>().begin(),
                   (*again)[0].flat<uint8_t>().end(),
                   (*after)[0].flat<uint8_t>().begin()));
}

TEST_CASE("the last batch of a test set has what is left") {
  const TestBatches batches = test_batches(make_set(100, 1), 30);
  REQUIRE(batches.count == 4);
  const auto last = batches.batch(3);
  REQUIRE(last.ok());
  CHECK((*last)[0].shape() == Shape{10, kSide, kSide});
  CHECK((*last)[1].shape() == Shape{10});
}

TEST_CASE("train_images: data sets that do not fit are refused") {
  io::ImageSet small;
  small.images = Tensor::make(DataType::kUInt8, {4, 2, 2});
  small.labels = Tensor::make(DataType::kUInt8, {4});
  const TaskOptions options = options_of(Model::kMlp);
  const auto sizes = make_task(options, make_set(40, 1), small);
  CHECK(sizes.status().message().find("12 x 12 pixels, and those to test with "
                                      "of 2 x 2") != std::string::npos);
  TaskOptions cnn = options_of(Model::kCnn);
  cnn.batch = 4;
  CHECK(make_task(cnn, small, small).status().message() ==
        "[cnn] pictures are 2 x 2; they must be 4 x 4 or larger");
  const auto rows = make_task(options, make_set(31, 1), make_set(9, 1));
  CHECK(rows.status().message() ==
        "[batches] 31 rows do not fill a batch of 32");
}

}  // namespace
}  // namespace tagflow::train_images
