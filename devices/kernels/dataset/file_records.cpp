// Datasets of the records of files: TFRecordDataset, TextLineDataset and
// FixedLengthRecordDataset.
#include <optional>

#include "devices/files/files.h"
#include "devices/files/host_access.h"
#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/pipeline.h"
#include "devices/kernels/reader/record_source.h"

namespace tagflow::devices {

namespace {

struct NamedFile {
  std::string name;   // as the graph says it
  std::string path;   // the one to open
  int64_t start = 0;  // the byte that its first record begins at
};

// The records of one file after the other. A file that cannot be read is an
// error, after which the next one follows. The worker inside reads the disk.
class FileRecordStage final : public Stage {
 public:
  FileRecordStage(Segment& segment, const Dataset& dataset,
                  const std::vector<NamedFile>& files, const ReaderSpec& spec)
      : segment_(segment), dataset_(&dataset), files_(files), spec_(spec) {}

  Progress next(Pull& pull) override {
    while (at_ < files_.size()) {
      Result<bool> found = begin();
      if (found.ok() && !*found) {
        if (!segment_.take_turn()) return Progress::kWait;
        continue;
      }
      Record record;
      if (found.ok()) found = source_->next(record);
      if (found.ok() && *found)
        return pull.give({Tensor::scalar(std::move(record.value))});
      const NamedFile& file = files_[at_++];
      source_ = nullptr;
      if (!found.ok())
        return pull.fail(
            Status(found.status())
                .with_prefix(fmt::format("{}file \"{}\": ", dataset_->prefix(),
                                         file.name)));
    }
    return Progress::kEnd;
  }

 private:
  // False if it is not at the first record of the file yet.
  Result<bool> begin() {
    const NamedFile& file = files_[at_];
    if (source_ == nullptr) {
      TAGFLOW_RETURN_IF_ERROR(check_size(file));
      ReaderSpec spec = spec_;
      spec.start = file.start;
      spec.refuses_rest = true;
      TAGFLOW_ASSIGN(source_, open_source(spec, file.name, file.path));
      has_begun_ = false;
    }
    if (!has_begun_) {
      TAGFLOW_ASSIGN(has_begun_, source_->begin());
    }
    return has_begun_;
  }
  // Of a file of records of one length, if that can be known before.
  Status check_size(const NamedFile& file) const {
    if (spec_.kind != ReaderSpec::Kind::kFixed ||
        spec_.compression != checkpoint::Compression::kNone)
      return {};
    TAGFLOW_ASSIGN(const auto opened,
                   checkpoint::local_files().open(file.path));
    const auto around = uint64_t(spec_.header + spec_.footer);
    const uint64_t size = opened->size();
    if (size >= around && (size - around) % uint64_t(spec_.record) == 0)
      return {};
    return invalid_argument(
        "its {} bytes are not a header of {}, a footer of {}, and whole "
        "records of {}",
        size, spec_.header, spec_.footer, spec_.record);
  }

  Segment& segment_;
  const DatasetRef dataset_;
  const std::vector<NamedFile> files_;
  const ReaderSpec spec_;
  size_t at_ = 0;
  std::unique_ptr<RecordSource> source_;  // of that file; null: not open
  bool has_begun_ = false;                // it
};

// The files of input 0. PermissionDenied if the session may not read one.
Result<std::vector<NamedFile>> files_input(const DatasetArgs& args) {
  const Tensor& names = args.context().input(0);
  if (names.rank() > 1)
    return args.context().fail("filenames must be a string or a vector, not {}",
                               names.describe());
  TAGFLOW_ASSIGN(const HostAccess* host, files_of(args.context()));
  std::vector<NamedFile> files;
  for (const std::string& name : names.flat<std::string>()) {
    TAGFLOW_ASSIGN(std::string path, host->path_to_read(name));
    files.push_back({name, std::move(path)});
  }
  return files;
}

// Takes where the files begin of an input, which has a number for each, or
// none.
Status read_starts(const DatasetArgs& args, int input,
                   std::vector<NamedFile>& files) {
  const Tensor& starts = args.context().input(input);
  if (starts.num_elements() == 0) return {};
  if (starts.rank() > 1 || starts.num_elements() != int64_t(files.size()))
    return args.context().fail(
        "byte_offsets must have a number for each of {} files, or none, but "
        "is {}",
        files.size(), starts.describe());
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].start = starts.flat<int64_t>()[i];
    if (files[i].start < 0)
      return args.context().fail(
          "byte_offsets must not be negative, but that of file {:?} is {}",
          files[i].name, files[i].start);
  }
  return {};
}

// `starts`: the input with byte_offsets, if there is one.
Result<DatasetParts> file_records(const DatasetArgs& args,
                                  const ReaderSpec& spec,
                                  std::optional<int> starts = {}) {
  TAGFLOW_ASSIGN(std::vector<NamedFile> files, files_input(args));
  if (starts) TAGFLOW_RETURN_IF_ERROR(read_starts(args, *starts, files));
  return DatasetParts{
      kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        return StagePtr(
            std::make_unique<FileRecordStage>(segment, self, files, spec));
      },
      std::vector{DataType::kString},
      {PartialShape::scalar()}};
}

Result<checkpoint::Compression> compression_input(const DatasetArgs& args,
                                                  int input) {
  TAGFLOW_ASSIGN(const std::string name, args.text(input, "compression_type"));
  return checkpoint::compression_of(name);
}

Result<DatasetParts> tf_record_dataset(const DatasetArgs& args) {
  ReaderSpec spec;
  spec.kind = ReaderSpec::Kind::kRecord;
  TAGFLOW_ASSIGN(spec.compression, compression_input(args, 1));
  constexpr int kStarts = 3;
  return file_records(args, spec,
                      args.context().num_inputs() > kStarts
                          ? std::optional(kStarts)
                          : std::nullopt);
}

Result<DatasetParts> text_line_dataset(const DatasetArgs& args) {
  ReaderSpec spec;
  spec.kind = ReaderSpec::Kind::kTextLine;
  TAGFLOW_ASSIGN(spec.compression, compression_input(args, 1));
  return file_records(args, spec);
}

Result<DatasetParts> fixed_length_record_dataset(const DatasetArgs& args) {
  // A record and what surrounds it must be in memory at once.
  constexpr int64_t kMostBytes = int64_t(1) << 40;
  ReaderSpec spec;
  spec.kind = ReaderSpec::Kind::kFixed;
  TAGFLOW_ASSIGN(spec.header, args.at_least(0, 1, "header_bytes"));
  TAGFLOW_ASSIGN(spec.record, args.at_least(1, 2, "record_bytes"));
  TAGFLOW_ASSIGN(spec.footer, args.at_least(0, 3, "footer_bytes"));
  for (const int64_t bytes : {spec.header, spec.record, spec.footer})
    if (bytes > kMostBytes)
      return args.context().fail("{} bytes are more than any record has",
                                 bytes);
  spec.hop = spec.record;
  if (args.context().num_inputs() > 5) {
    TAGFLOW_ASSIGN(spec.compression, compression_input(args, 5));
  }
  return file_records(args, spec);
}

}  // namespace

void register_dataset_file_kernels(KernelRegistry& registry) {
  for (const char* op : {"TFRecordDataset", "TFRecordDatasetV2"})
    add_dataset(registry, op, tf_record_dataset);
  add_dataset(registry, "TextLineDataset", text_line_dataset);
  for (const char* op :
       {"FixedLengthRecordDataset", "FixedLengthRecordDatasetV2"})
    add_dataset(registry, op, fixed_length_record_dataset);
}

}  // namespace tagflow::devices
