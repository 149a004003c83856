// A data set of JPEG pictures in a folder: Examples in TFRecord files.
//
//   FOLDER/train-0.tfrecord ...  to train with
//   FOLDER/test-0.tfrecord ...   to test with
//   FOLDER/labels.txt            the names of the classes, one a line
//
// An Example has "image/encoded", the bytes of a JPEG file, and
// "image/class/label", the number of its class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/shared/training/subject.h"
#include "graph/status.h"

namespace tagflow::train_jpegs {

inline constexpr const char* kPictureKey = "image/encoded";
inline constexpr const char* kLabelKey = "image/class/label";

struct DataSet {
  std::vector<std::string> labels;
  std::vector<std::string> train_files;
  int64_t train_records = 0;
  training::DataSum train_sum;            // of the records and the labels
  std::vector<std::string> test_records;  // serialized Examples
};

// Whether the folder has a data set: labels.txt is written last. An error if it
// has records without labels.txt: they are not to be written over.
Result<bool> has_data(const std::filesystem::path& folder);

// Draws so many pictures of each of kShapes, and a fifth as many to test with.
// Errors of writing.
Status write_drawings(const std::filesystem::path& folder, int64_t per_class,
                      uint64_t seed);
// Takes the files *.jpg and *.jpeg of the folders in `source`, each of which is
// a class with the name of the folder; every fifth is to test with. NotFound if
// there are not two classes, or one has fewer than five files; InvalidArgument
// for a file that is no JPEG. Errors of reading and writing.
Status write_folders(const std::filesystem::path& folder,
                     const std::filesystem::path& source, uint64_t seed);

// Reads all files through once, so that a damaged one is known before the
// training. NotFound if there is no data set; DataLoss.
Result<DataSet> read_data(const std::filesystem::path& folder);

}  // namespace tagflow::train_jpegs
