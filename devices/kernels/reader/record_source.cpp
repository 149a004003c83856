#include "devices/kernels/reader/record_source.h"

#include <limits>
#include <utility>

#include "devices/files/files.h"
#include "devices/files/host_access.h"
#include "devices/files/input_stream.h"
#include "devices/files/lmdb_file.h"
#include "devices/files/record_file.h"
#include "devices/kernel_inputs.h"

namespace tagflow::devices {

namespace {

using Kind = ReaderSpec::Kind;
using checkpoint::InputStream;

constexpr std::pair<Kind, std::string_view> kNames[] = {
    {Kind::kWholeFile, "WholeFileReader"},
    {Kind::kTextLine, "TextLineReader"},
    {Kind::kFixed, "FixedLengthRecordReader"},
    {Kind::kRecord, "TFRecordReader"},
    {Kind::kIdentity, "IdentityReader"},
    {Kind::kLmdb, "LMDBReader"},
};

}  // namespace

Result<ReaderSpec> ReaderSpec::make(const KernelInfo& info) {
  ReaderSpec spec;
  for (const auto& [kind, name] : kNames)
    if (info.node().op().starts_with(name)) spec.kind = kind;
  if (spec.kind == Kind::kTextLine) {
    spec.skipped_lines = attr_of<int64_t>(info, "skip_header_lines");
    if (spec.skipped_lines < 0)
      return invalid_argument(
          "skip_header_lines must not be negative, but is {}",
          spec.skipped_lines);
  }
  if (spec.kind == Kind::kRecord) {
    TAGFLOW_ASSIGN(spec.compression,
                   checkpoint::compression_of(
                       attr_of<std::string>(info, "compression_type")));
  }
  if (spec.kind != Kind::kFixed) return spec;
  TAGFLOW_ASSIGN(spec.compression, checkpoint::compression_of(
                                       attr_of<std::string>(info, "encoding")));
  spec.header = attr_of<int64_t>(info, "header_bytes");
  spec.record = attr_of<int64_t>(info, "record_bytes");
  spec.footer = attr_of<int64_t>(info, "footer_bytes");
  spec.hop = attr_of<int64_t>(info, "hop_bytes");
  // Sums of two stay in range.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  for (const int64_t bytes : {spec.header, spec.record, spec.footer, spec.hop})
    if (bytes < 0 || bytes > kMost)
      return invalid_argument("a record cannot have {} bytes", bytes);
  if (spec.record == 0)
    return invalid_argument("record_bytes must be positive, not 0");
  if (spec.hop == 0) spec.hop = spec.record;
  return spec;
}

std::string_view ReaderSpec::name() const {
  for (const auto& [known, name] : kNames)
    if (known == kind) return name;
  return {};
}

namespace {

// The name, or the contents, as the only record.
class SingleRecord final : public RecordSource {
 public:
  explicit SingleRecord(std::string value) : value_(std::move(value)) {}
  Result<bool> next(Record& record) override {
    if (std::exchange(is_over_, true)) return false;
    record.number = -1;
    record.value = std::move(value_);
    return true;
  }
  bool is_over() const override { return is_over_; }

 private:
  std::string value_;
  bool is_over_ = false;
};

// Lines, without their ends: LF, or CR LF.
class Lines final : public RecordSource {
 public:
  Lines(InputStream stream, int64_t skipped)
      : stream_(std::move(stream)), skipped_(skipped) {}
  Result<bool> next(Record& record) override {
    std::string_view line;
    do {
      TAGFLOW_ASSIGN(const bool found, stream_.read_line(line));
      if (!found) return false;
    } while (++number_ <= skipped_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    record.number = number_;
    record.value.assign(line);
    return true;
  }

 private:
  InputStream stream_;
  const int64_t skipped_;
  int64_t number_ = 0;
};

class FixedRecords final : public RecordSource {
 public:
  FixedRecords(InputStream stream, const ReaderSpec& spec)
      : stream_(std::move(stream)), spec_(spec) {}
  Result<bool> next(Record& record) override {
    TAGFLOW_ASSIGN(const bool is_there, stream_.skip_ahead(uint64_t(gap_)));
    if (!is_there && number_ < 0)
      return error(Code::kDataLoss, "the file is shorter than a header of {}",
                   spec_.header);
    gap_ = 0;
    TAGFLOW_ASSIGN(const std::string_view bytes,
                   stream_.peek(size_t(spec_.record + spec_.footer)));
    const auto left = int64_t(bytes.size());
    if (left < spec_.record + spec_.footer) {
      if (!spec_.refuses_rest || left == spec_.footer) return false;
      return error(Code::kDataLoss,
                   "behind its last record it has {} bytes, not a footer of {}",
                   left, spec_.footer);
    }
    record.number = ++number_;
    record.value.assign(bytes.substr(0, size_t(spec_.record)));
    gap_ = spec_.hop;
    return true;
  }

 private:
  InputStream stream_;
  const ReaderSpec spec_;
  int64_t gap_ = spec_.header;  // the bytes before the next record
  int64_t number_ = -1;
};

class TfRecords final : public RecordSource {
 public:
  TfRecords(InputStream stream, uint64_t start)
      : stream_(std::move(stream)), to_skip_(start) {}
  Result<bool> begin() override {
    constexpr uint64_t kPiece = uint64_t{1} << 20;
    const uint64_t piece =
        stream_.is_compressed() ? std::min(to_skip_, kPiece) : to_skip_;
    to_skip_ -= piece;
    TAGFLOW_ASSIGN(const bool is_inside, stream_.skip_ahead(piece));
    // Behind the end there are no records.
    return to_skip_ == 0 || !is_inside;
  }
  Result<bool> next(Record& record) override {
    const auto position = int64_t(stream_.position());
    std::string_view data;
    TAGFLOW_ASSIGN(const bool found, checkpoint::read_record(stream_, data));
    if (!found) return false;
    record.number = position;
    record.value.assign(data);
    return true;
  }

 private:
  InputStream stream_;
  uint64_t to_skip_;
};

class LmdbRecords final : public RecordSource {
 public:
  explicit LmdbRecords(checkpoint::LmdbFile file) : file_(std::move(file)) {}
  Result<bool> next(Record& record) override {
    return file_.next(record.key, record.value);
  }

 private:
  checkpoint::LmdbFile file_;
};

}  // namespace

Result<std::string> path_to_read(const ReaderSpec& spec, const HostAccess& host,
                                 const std::string& name) {
  TAGFLOW_ASSIGN(std::string path, host.path_to_read(name));
  if (spec.kind != Kind::kLmdb || !checkpoint::local_files().is_folder(path))
    return path;
  return host.path_to_read(name + "/data.mdb");
}

Result<std::unique_ptr<RecordSource>> open_source(const ReaderSpec& spec,
                                                  const std::string& name,
                                                  const std::string& path) {
  using Made = std::unique_ptr<RecordSource>;
  if (spec.kind == Kind::kIdentity)
    return Made(std::make_unique<SingleRecord>(name));
  checkpoint::FileSystem& files = checkpoint::local_files();
  if (spec.kind == Kind::kWholeFile) {
    TAGFLOW_ASSIGN(std::string contents,
                   checkpoint::read_whole(files, path,
                                          std::numeric_limits<int64_t>::max()));
    return Made(std::make_unique<SingleRecord>(std::move(contents)));
  }
  TAGFLOW_ASSIGN(auto file, files.open(path));
  if (spec.kind == Kind::kLmdb) {
    TAGFLOW_ASSIGN(auto database, checkpoint::LmdbFile::open(std::move(file)));
    return Made(std::make_unique<LmdbRecords>(std::move(database)));
  }
  InputStream stream(std::move(file), spec.compression);
  if (spec.kind == Kind::kTextLine)
    return Made(std::make_unique<Lines>(std::move(stream), spec.skipped_lines));
  if (spec.kind == Kind::kFixed)
    return Made(std::make_unique<FixedRecords>(std::move(stream), spec));
  return Made(
      std::make_unique<TfRecords>(std::move(stream), uint64_t(spec.start)));
}

}  // namespace tagflow::devices
