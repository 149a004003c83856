#include "apps/shared/io/image_set.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "apps/shared/io/file.h"
#include "tests/temp_folder.h"

namespace tagflow::io {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the test, with a set of these bytes.
struct Folder : testing::TempFolder {
  Folder(std::string_view images, std::string_view labels)
      : TempFolder("image_set") {
    // The reader looks into files, not at their names.
    REQUIRE(write_file(path() / "t10k-images-idx3-ubyte.gz", images).ok());
    REQUIRE(write_file(path() / "t10k-labels-idx1-ubyte.gz", labels).ok());
  }

  Result<ImageSet> read(int64_t limit = 0) const {
    return read_image_set(path(), ImagePart::kTest, limit);
  }
};

const std::string kImages(
    "\0\0\x08\x03\0\0\0\x03\0\0\0\x02\0\0\0\x02"
    "abcdefghijkl",
    28);
const std::string kLabels("\0\0\x08\x01\0\0\0\x03\7\x08\x09", 11);

TEST_CASE("pictures and their labels are read, or the first of them") {
  const Folder folder(kImages, kLabels);
  const auto all = folder.read();
  REQUIRE_MESSAGE(all.ok(), all.status().to_string());
  CHECK(all->images.shape() == Shape{3, 2, 2});
  CHECK(identical(all->labels, Tensor::vector<uint8_t>({7, 8, 9})));
  const auto two = folder.read(2);
  REQUIRE(two.ok());
  CHECK(identical(two->images,
                  Tensor::of<uint8_t>(
                      {2, 2, 2}, {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})));
  CHECK(identical(two->labels, Tensor::vector<uint8_t>({7, 8})));
  const auto more = folder.read(100);
  REQUIRE(more.ok());
  CHECK(more->images.dim(0) == 3);
}

TEST_CASE("an image set is refused if pictures and labels do not match") {
  const auto message_of = [](std::string_view images, std::string_view labels) {
    const Status status = Folder(images, labels).read().status();
    CHECK(status.code() == Code::kInvalidArgument);
    return std::string(status.message());
  };
  const std::string few("\0\0\x08\x01\0\0\0\x02\7\x08", 10);
  CHECK(message_of(kImages, few).find("do not match") != std::string::npos);
  CHECK(message_of(kImages, kImages).find("do not match") != std::string::npos);
  const std::string wide(
      "\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02"
      "abcdef",
      22);
  CHECK(message_of(wide, kLabels).find("do not match") != std::string::npos);
  const std::string none("\0\0\x08\x03\0\0\0\0\0\0\0\0\0\0\0\0", 16);
  const std::string no_labels("\0\0\x08\x01\0\0\0\0", 8);
  CHECK(message_of(none, no_labels).find("do not match") != std::string::npos);
}

TEST_CASE("a set that is not there, or is damaged, is said so") {
  const Folder folder(kImages, kLabels);
  CHECK(read_image_set(folder.path(), ImagePart::kTrain).status().code() ==
        Code::kNotFound);
  const Folder cut(kImages.substr(0, 20), kLabels);
  CHECK(cut.read().status().code() == Code::kDataLoss);
}

}  // namespace
}  // namespace tagflow::io
