#include "devices/kernels/dataset/file_cache.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"
#include "devices/kernels/dataset/pipeline.h"

namespace tagflow::devices {

namespace {

using checkpoint::BundleReader;
using checkpoint::BundleWriter;

// The keys of tensors, "      3_0": TensorFlow pads the number of the element
// for ten million of them, and that of the component for all components.
class CacheKeys {
 public:
  explicit CacheKeys(size_t components)
      : components_(components),
        width_(
            fmt::formatted_size("{}", components == 0 ? 0 : components - 1)) {}

  static constexpr int64_t kMostElements = 10'000'000;

  size_t components() const { return components_; }
  std::string of(int64_t element, size_t component) const {
    return fmt::format("{:7}_{:{}}", element, component, width_);
  }

 private:
  const size_t components_;
  const size_t width_;
};

class CacheReader final : public Stage {
 public:
  CacheReader(const Dataset& dataset, std::unique_ptr<BundleReader> reader,
              Allocator& allocator, std::string title)
      : spec_(dataset.spec()),
        keys_(spec_.types.size()),
        reader_(std::move(reader)),
        allocator_(allocator),
        title_(std::move(title)),
        count_(int64_t(reader_->tensors().size() / keys_.components())) {}

  Progress next(Pull& pull) override {
    if (at_ == count_) return Progress::kEnd;
    Result<Element> element = read(at_++);
    if (!element.ok())
      return pull.fail(std::move(element).status().with_prefix(title_));
    return pull.give(*std::move(element));
  }

 private:
  Result<Element> read(int64_t number) const {
    Element element;
    for (size_t i = 0; i < keys_.components(); ++i) {
      TAGFLOW_ASSIGN(element.emplace_back(),
                     reader_->read(keys_.of(number, i), allocator_));
    }
    TAGFLOW_RETURN_IF_ERROR(spec_.check(element));
    return element;
  }

  const ElementSpec spec_;
  const CacheKeys keys_;
  const std::unique_ptr<BundleReader> reader_;
  Allocator& allocator_;
  const std::string title_;  // for errors
  const int64_t count_;
  int64_t at_ = 0;
};

// The lock file, as long as this lives.
class CacheLock {
 public:
  static Result<std::unique_ptr<CacheLock>> take(checkpoint::FileSystem& files,
                                                 const std::string& prefix) {
    std::string path = prefix + "_0.lockfile";
    auto file = files.create(path);
    if (file.status().code() == Code::kAlreadyExists)
      return error(Code::kAlreadyExists,
                   "another iteration writes this cache: its lock file \"{}\" "
                   "exists. If no program is writing it, remove that file",
                   path);
    if (!file.ok()) return std::move(file).status();
    return std::unique_ptr<CacheLock>(new CacheLock(files, std::move(path)));
  }
  ~CacheLock() { (void)files_.remove(path_); }
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

 private:
  CacheLock(checkpoint::FileSystem& files, std::string path)
      : files_(files), path_(std::move(path)) {}

  checkpoint::FileSystem& files_;
  const std::string path_;
};

// The files that an iteration writes. It lets go of them when the iteration
// ends, so that the next one can begin. Thread-safe.
class CacheOutput final : public Pipeline::Part {
 public:
  CacheOutput(size_t components, std::unique_ptr<CacheLock> lock,
              std::unique_ptr<BundleWriter> writer)
      : keys_(components), lock_(std::move(lock)), writer_(std::move(writer)) {}

  Status write(const Element& element) {
    const std::lock_guard lock(mutex_);
    TAGFLOW_RETURN_IF_ERROR(check_open());
    if (written_ == CacheKeys::kMostElements)
      return error(Code::kInvalidArgument,
                   "a cache in a file has at most {} elements",
                   CacheKeys::kMostElements);
    for (size_t i = 0; i < element.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(
          writer_->add(keys_.of(written_, i), element[i])
              .with_prefix(
                  fmt::format("component {} of element {}: ", i, written_)));
    ++written_;
    return {};
  }
  Status finish() {
    const std::lock_guard lock(mutex_);
    TAGFLOW_RETURN_IF_ERROR(check_open());
    TAGFLOW_RETURN_IF_ERROR(writer_->finish());
    TAGFLOW_RETURN_IF_ERROR(writer_->publish());
    close();
    return {};
  }
  void end() noexcept override {
    const std::lock_guard lock(mutex_);
    close();
  }

 private:
  // REQUIRES, as of close(): mutex_ is held.
  Status check_open() const {
    if (writer_ != nullptr) return {};
    return error(Code::kCancelled, "the iteration that wrote it has ended");
  }
  void close() {
    writer_ = nullptr;
    lock_ = nullptr;
  }

  const CacheKeys keys_;
  std::mutex mutex_;                      // guards the below
  std::unique_ptr<CacheLock> lock_;       // outlives the writer
  std::unique_ptr<BundleWriter> writer_;  // null: closed
  int64_t written_ = 0;
};

class CacheWriter final : public Stage {
 public:
  CacheWriter(StagePtr input, std::shared_ptr<CacheOutput> output,
              std::string title)
      : input_(std::move(input)),
        output_(std::move(output)),
        title_(std::move(title)) {}

  Progress next(Pull& pull) override {
    if (!failed_.ok()) return pull.fail(failed_);
    if (is_over_) return Progress::kEnd;
    const Progress progress = input_->next(pull);
    is_over_ = progress == Progress::kEnd;
    // What failed is missing in later iterations, too, as in TensorFlow.
    if (progress == Progress::kElement)
      failed_ = output_->write(pull.element).with_prefix(title_);
    else if (progress == Progress::kEnd)
      failed_ = output_->finish().with_prefix(title_);
    return failed_.ok() ? progress : pull.fail(failed_);
  }

 private:
  const StagePtr input_;
  const std::shared_ptr<CacheOutput> output_;
  const std::string title_;  // for errors
  bool is_over_ = false;
  Status failed_;  // for ever
};

// Becomes one of the above when the first element is asked for.
class FileCacheStage final : public Stage {
 public:
  FileCacheStage(Segment& segment, const Dataset& self, DatasetRef input,
                 std::string prefix, std::shared_ptr<const HostAccess> host)
      : segment_(segment),
        self_(&self),
        input_(std::move(input)),
        prefix_(std::move(prefix)),
        host_(std::move(host)) {}

  Progress next(Pull& pull) override {
    if (stage_ == nullptr && failed_.ok()) {
      const Segment::Depth here(segment_, depth_);
      Result<StagePtr> stage = start();
      if (stage.ok())
        stage_ = *std::move(stage);
      else
        failed_ = std::move(stage).status().with_prefix(title());
    }
    return failed_.ok() ? stage_->next(pull) : pull.fail(failed_);
  }

 private:
  Result<StagePtr> start() const {
    const HostAccess& host = *host_;
    checkpoint::FileSystem& files = host.files();
    auto reader = BundleReader::open(prefix_, files);
    if (reader.ok()) return read_from(*std::move(reader));
    if (reader.status().code() != Code::kNotFound)
      return std::move(reader).status();
    TAGFLOW_ASSIGN(auto lock, CacheLock::take(files, prefix_));
    // Another iteration may have finished it since.
    reader = BundleReader::open(prefix_, files);
    if (reader.ok()) return read_from(*std::move(reader));
    TAGFLOW_ASSIGN(auto writer, BundleWriter::create(prefix_, 1, {&files}));
    TAGFLOW_ASSIGN(StagePtr input, input_->start(segment_));
    auto output = std::make_shared<CacheOutput>(
        self_->spec().types.size(), std::move(lock), std::move(writer));
    if (!segment_.pipeline().add(output))
      return error(Code::kCancelled, "the iteration has ended");
    return StagePtr(std::make_unique<CacheWriter>(std::move(input),
                                                  std::move(output), title()));
  }

  StagePtr read_from(std::unique_ptr<BundleReader> reader) const {
    return std::make_unique<CacheReader>(
        *self_, std::move(reader), segment_.pipeline().allocator(), title());
  }
  std::string title() const {
    return fmt::format("{}cache \"{}\": ", self_->prefix(), prefix_);
  }

  Segment& segment_;
  const int depth_ = segment_.depth();
  const DatasetRef self_;
  const DatasetRef input_;
  const std::string prefix_;
  const std::shared_ptr<const HostAccess> host_;  // outlives the stage
  StagePtr stage_;
  Status failed_;  // for ever
};

}  // namespace

StagePtr file_cache_stage(Segment& segment, const Dataset& self,
                          DatasetRef input, std::string prefix,
                          std::shared_ptr<const HostAccess> host) {
  return std::make_unique<FileCacheStage>(segment, self, std::move(input),
                                          std::move(prefix), std::move(host));
}

}  // namespace tagflow::devices
