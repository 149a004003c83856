#include "apps/examples/train_jpegs/records.h"

#include <algorithm>
#include <functional>
#include <random>
#include <system_error>
#include <utility>

#include "apps/examples/train_jpegs/shapes.h"
#include "apps/shared/io/file.h"
#include "devices/files/record_file.h"
#include "devices/media/jpeg.h"
#include "graph/fault.h"
#include "graph/proto/example.pb.h"

namespace tagflow::train_jpegs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLabelsFile = "labels.txt";
constexpr const char* kRecordsSuffix = ".tfrecord";
constexpr int64_t kTestShare = 5;  // one of so many

// The picture of a class.
struct Source {
  size_t label = 0;
  // Returns the bytes of a JPEG file.
  std::function<Result<std::string>()> jpeg;
};

std::string example_of(std::string jpeg, size_t label) {
  tensorflow::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features[kPictureKey].mutable_bytes_list()->add_value(std::move(jpeg));
  features[kLabelKey].mutable_int64_list()->add_value(int64_t(label));
  return example.SerializeAsString();
}

// In random order, since a reader reads a file from front to back, into several
// files, whose names a queue mixes.
Status write_part(const fs::path& folder, const std::string& part,
                  std::vector<Source> sources, std::mt19937_64& random) {
  constexpr size_t kLeastFiles = 4, kMostRecords = 2000;
  for (size_t i = sources.size(); i > 1; --i)
    std::swap(sources[i - 1], sources[random() % i]);
  const size_t files =
      std::max(kLeastFiles, (sources.size() + kMostRecords - 1) / kMostRecords);
  for (size_t file = 0; file < files; ++file) {
    std::string bytes;
    for (size_t i = file; i < sources.size(); i += files) {
      TAGFLOW_ASSIGN(std::string jpeg, sources[i].jpeg());
      checkpoint::append_record(bytes,
                                example_of(std::move(jpeg), sources[i].label));
    }
    TAGFLOW_RETURN_IF_ERROR(io::write_file(
        folder / fmt::format("{}-{}{}", part, file, kRecordsSuffix), bytes));
  }
  return {};
}

Status write_data(const fs::path& folder,
                  const std::vector<std::string>& labels,
                  std::vector<Source> train, std::vector<Source> test,
                  std::mt19937_64& random) {
  TAGFLOW_RETURN_IF_ERROR(io::make_folder(folder));
  TAGFLOW_RETURN_IF_ERROR(
      write_part(folder, "train", std::move(train), random));
  TAGFLOW_RETURN_IF_ERROR(write_part(folder, "test", std::move(test), random));
  std::string text;
  for (const std::string& label : labels) text += label + "\n";
  return io::write_file(folder / kLabelsFile, text);
}

Result<std::vector<fs::path>> sorted_entries(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, code))
    paths.push_back(entry.path());
  if (code)
    return error(Code::kNotFound,
                 "[pictures] cannot read the folder \"{}\": {}",
                 folder.string(), code.message());
  std::ranges::sort(paths);
  return paths;
}

// The JPEG files of a class.
Result<std::vector<fs::path>> pictures_in(const fs::path& folder) {
  TAGFLOW_ASSIGN(std::vector<fs::path> paths, sorted_entries(folder));
  std::erase_if(paths, [](const fs::path& path) {
    std::string end = path.extension().string();
    for (char& c : end) c = char(std::tolower(static_cast<unsigned char>(c)));
    return end != ".jpg" && end != ".jpeg";
  });
  if (int64_t(paths.size()) < kTestShare)
    return error(
        Code::kNotFound,
        "[pictures] \"{}\" has {} files *.jpg or *.jpeg; a class needs "
        "{}",
        folder.string(), paths.size(), kTestShare);
  return paths;
}

Result<std::string> read_jpeg(const fs::path& path) {
  TAGFLOW_ASSIGN(std::string bytes, io::read_file(path));
  // The whole of it: later nobody knows which file a record was.
  std::vector<uint8_t> pixels;
  const auto memory = [&](const media::PictureShape& shape) -> Result<void*> {
    pixels.resize(size_t(shape.height * shape.width * shape.channels));
    return pixels.data();
  };
  Status status = guarded([&] {
    return media::decode_jpeg(bytes, {.channels = 3}, memory, [] {});
  });
  if (!status.ok())
    return std::move(status).with_prefix(
        fmt::format("[pictures] \"{}\": ", path.string()));
  return bytes;
}

// Calls `take` with each record of a file.
Status for_each_record(const fs::path& path,
                       const std::function<void(std::string_view)>& take) {
  TAGFLOW_ASSIGN(auto file, checkpoint::local_files().open(path.string()));
  checkpoint::InputStream stream(std::move(file),
                                 checkpoint::Compression::kNone);
  std::string_view record;
  for (;;) {
    Result<bool> found = checkpoint::read_record(stream, record);
    if (!found.ok())
      return std::move(found).status().with_prefix(
          fmt::format("[pictures] \"{}\": ", path.string()));
    if (!*found) return {};
    take(record);
  }
}

}  // namespace

Result<bool> has_data(const fs::path& folder) {
  std::error_code code;
  if (fs::exists(folder / kLabelsFile, code)) return true;
  for (fs::directory_iterator at(folder, code), end; !code && at != end;
       at.increment(code))
    if (at->path().extension() == kRecordsSuffix)
      return error(Code::kFailedPrecondition,
                   "[pictures] \"{}\" has records, as \"{}\", but no {}: write "
                   "one, with the name of a class on each line, or remove them",
                   folder.string(), at->path().filename().string(),
                   kLabelsFile);
  return false;
}

Status write_drawings(const fs::path& folder, int64_t per_class,
                      uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int64_t count) {
    std::vector<Source> sources;
    for (size_t kind = 0; kind < kShapes.size(); ++kind)
      for (int64_t i = 0; i < count; ++i)
        sources.push_back(
            {kind, [kind, own = random()] {
               std::mt19937_64 own_random(own);
               const Drawing drawing = draw_shape(kind, own_random);
               return media::encode_jpeg(drawing.shape, drawing.pixels.data(),
                                         {.quality = 90}, [] {});
             }});
    return sources;
  };
  std::vector<Source> train = draw(per_class);
  std::vector<Source> test = draw(std::max<int64_t>(1, per_class / kTestShare));
  return write_data(folder, {kShapes.begin(), kShapes.end()}, std::move(train),
                    std::move(test), random);
}

Status write_folders(const fs::path& folder, const fs::path& source,
                     uint64_t seed) {
  TAGFLOW_ASSIGN(std::vector<fs::path> folders, sorted_entries(source));
  std::erase_if(folders,
                [](const fs::path& path) { return !fs::is_directory(path); });
  if (folders.size() < 2)
    return error(Code::kNotFound,
                 "[pictures] \"{}\" has {} folders; a classifier needs two, "
                 "one for each class",
                 source.string(), folders.size());
  std::vector<std::string> labels;
  std::vector<Source> train, test;
  for (const fs::path& one : folders) {
    TAGFLOW_ASSIGN(const std::vector<fs::path> paths, pictures_in(one));
    for (size_t i = 0; i < paths.size(); ++i)
      (i % kTestShare == 0 ? test : train)
          .push_back(
              {labels.size(), [path = paths[i]] { return read_jpeg(path); }});
    labels.push_back(one.filename().string());
  }
  std::mt19937_64 random(seed);
  return write_data(folder, labels, std::move(train), std::move(test), random);
}

Result<DataSet> read_data(const fs::path& folder) {
  DataSet data;
  TAGFLOW_ASSIGN(const std::string text, io::read_file(folder / kLabelsFile));
  data.train_sum.add(text);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) data.labels.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  TAGFLOW_ASSIGN(const std::vector<fs::path> paths, sorted_entries(folder));
  for (const fs::path& path : paths) {
    const std::string name = path.filename().string();
    if (!name.ends_with(kRecordsSuffix)) continue;
    if (name.starts_with("train-")) {
      data.train_files.push_back(path.string());
      TAGFLOW_RETURN_IF_ERROR(
          for_each_record(path, [&](std::string_view record) {
            ++data.train_records;
            data.train_sum.add(record);
          }));
    } else if (name.starts_with("test-")) {
      TAGFLOW_RETURN_IF_ERROR(
          for_each_record(path, [&](std::string_view record) {
            data.test_records.emplace_back(record);
          }));
    }
  }
  if (data.train_records == 0 || data.test_records.empty() ||
      data.labels.empty())
    return error(Code::kNotFound,
                 "[pictures] \"{}\" lacks labels, or files train-*.tfrecord or "
                 "test-*.tfrecord with records",
                 folder.string());
  return data;
}

}  // namespace tagflow::train_jpegs
