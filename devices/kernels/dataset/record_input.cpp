// RecordInput: batches of the records of files, for ever, each epoch in another
// order. It is an iterator whose dataset is its own node.
#include <fmt/format.h>

#include <iterator>
#include <random>

#include "devices/files/host_access.h"
#include "devices/files/matching_files.h"
#include "devices/kernel_inputs.h"
#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/element_answer.h"
#include "devices/kernels/dataset/iterator.h"
#include "devices/kernels/reader/record_source.h"
#include "devices/murmur_hash.h"
#include "devices/state/resource_op.h"

namespace tagflow::devices {

namespace {

struct RecordInputSpec {
  std::string pattern;
  int64_t seed = 0;
  float shift = 0;  // a part of the files
  int64_t buffer_size = 1;
  int64_t parallelism = 1;
  int64_t batch_size = 1;
  ReaderSpec reader;

  static Result<RecordInputSpec> make(const KernelInfo& info) {
    RecordInputSpec spec;
    spec.pattern = attr_of<std::string>(info, "file_pattern");
    spec.seed = attr_of<int64_t>(info, "file_random_seed");
    spec.shift = attr_of<float>(info, "file_shuffle_shift_ratio");
    spec.buffer_size = attr_of<int64_t>(info, "file_buffer_size");
    spec.parallelism = attr_of<int64_t>(info, "file_parallelism");
    spec.batch_size = attr_of<int64_t>(info, "batch_size");
    spec.reader.kind = ReaderSpec::Kind::kRecord;
    TAGFLOW_ASSIGN(spec.reader.compression,
                   checkpoint::compression_of(
                       attr_of<std::string>(info, "compression_type")));
    if (spec.batch_size < 0)
      return invalid_argument("batch_size must not be negative, but is {}",
                              spec.batch_size);
    for (const auto& [value, name] :
         {std::pair(spec.buffer_size, "file_buffer_size"),
          {spec.parallelism, "file_parallelism"}})
      if (value < 1)
        return invalid_argument("{} must be positive, but is {}", name, value);
    return spec;
  }
};

// Note [Order of records]
// The files of an epoch are shuffled, and dealt out to `parallelism` shards.
// Each shard gathers some records and adds them to the buffer, in which each
// takes a random place. Records are taken from the end of the buffer, which is
// full, unless the epoch has no more. An epoch begins when all records of the
// one before are taken. With one shard, and a buffer for an epoch, TensorFlow
// gives the same order, epoch by epoch; otherwise its threads' speed counts.
class RecordInputStage final : public Stage {
 public:
  RecordInputStage(Segment& segment, const Dataset& self,
                   const RecordInputSpec& spec,
                   std::shared_ptr<const HostAccess> host)
      : segment_(segment),
        self_(&self),
        spec_(spec),
        host_(std::move(host)),
        capacity_(size_t(spec.buffer_size)),
        numbers_(uint64_t(spec.seed)) {}

  Progress next(Pull& pull) override {
    if (failed_.ok()) {
      const Result<bool> is_whole = fill_batch();
      if (is_whole.ok())
        return *is_whole ? pull.give({std::exchange(batch_, {})})
                         : Progress::kWait;
      failed_ = Status(is_whole.status()).with_prefix(self_->prefix());
    }
    return pull.fail(failed_);
  }

 private:
  struct Shard {
    std::vector<std::string> files;  // the present one is the last
    std::unique_ptr<RecordSource> source;
    std::vector<std::string> records;
  };
  static constexpr size_t kAtOnce = 16;

  // In a vector that may have grown to twice its size.
  static size_t bytes_of(const std::string& record) {
    return 2 * sizeof record + record.size();
  }

  // False: it waits for its turn.
  Result<bool> fill_batch() {
    if (!batch_.valid()) {
      TAGFLOW_ASSIGN(batch_,
                     Tensor::allocate(DataType::kString, {spec_.batch_size},
                                      segment_.pipeline().allocator()));
      filled_ = 0;
    }
    for (auto* const rows = batch_.mutable_data<std::string>();
         filled_ < spec_.batch_size; ++filled_) {
      TAGFLOW_ASSIGN(const bool is_there, fill_buffer());
      if (!is_there) return false;
      charge_.reduce(bytes_of(buffer_.back()));
      rows[filled_] = std::move(buffer_.back());
      buffer_.pop_back();
    }
    return true;
  }

  // Until the buffer is full, or has the rest of the epoch. False as above.
  Result<bool> fill_buffer() {
    if (shards_.empty() && buffer_.empty())
      TAGFLOW_RETURN_IF_ERROR(begin_epoch());
    while (!shards_.empty() && buffer_.size() < capacity_) {
      if (!segment_.take_turn()) return false;
      at_ %= shards_.size();
      Shard& shard = shards_[at_];
      if (shard.records.size() < kAtOnce && !shard.files.empty()) {
        TAGFLOW_RETURN_IF_ERROR(read_one(shard));
        continue;
      }
      add_records(shard);
      if (shard.files.empty() && shard.records.empty())
        shards_.erase(shards_.begin() + int64_t(at_));
      else
        ++at_;
    }
    if (shards_.empty()) {
      if (added_ == 0)
        return error(Code::kOutOfRange,
                     "the files that match \"{}\" have no record",
                     spec_.pattern);
      capacity_ = std::min(capacity_, added_);
    }
    return true;
  }

  Status begin_epoch() {
    ++epoch_;
    added_ = at_ = 0;
    TAGFLOW_ASSIGN(std::vector<std::string> files, find_files());
    if (files.empty())
      return error(Code::kNotFound, "Found no files at {}", spec_.pattern);
    const std::string_view bytes(reinterpret_cast<const char*>(&epoch_),
                                 sizeof epoch_);
    MurmurHash hash(uint64_t(spec_.seed), bytes.size());
    hash.add(bytes);
    std::ranges::shuffle(files, std::mt19937_64(hash.value()));
    if (spec_.shift >= 0 && spec_.shift < 1)
      // Clang 14 does not take std::ranges::rotate() of this library.
      std::rotate(files.begin(),
                  files.begin() + int64_t(spec_.shift * float(files.size())),
                  files.end());
    const size_t count = std::min(files.size(), size_t(spec_.parallelism));
    shards_.resize(count);
    for (size_t i = files.size(); i-- > 0;)
      shards_[i % count].files.push_back(std::move(files[i]));
    return {};
  }

  // Those of each pattern, in the order of the patterns.
  Result<std::vector<std::string>> find_files() const {
    std::vector<std::string> files;
    for (size_t begin = 0; begin <= spec_.pattern.size();) {
      const size_t end =
          std::min(spec_.pattern.find(',', begin), spec_.pattern.size());
      TAGFLOW_ASSIGN(
          auto found,
          matching_files(*host_, spec_.pattern.substr(begin, end - begin),
                         [this] { return segment_.is_stopped(); }));
      std::ranges::move(found, std::back_inserter(files));
      begin = end + 1;
    }
    return files;
  }

  Status read_one(Shard& shard) {
    const std::string& file = shard.files.back();
    Record record;
    const Result<bool> found = read(shard, file, record);
    if (!found.ok())
      return Status(found.status())
          .with_prefix(fmt::format("file \"{}\": ", file));
    if (*found) {
      const size_t bytes = charge_.bytes() + bytes_of(record.value);
      Allocator& memory = segment_.pipeline().allocator();
      if (!charge_.set(memory, bytes))
        return out_of_memory(memory, "the buffer of records", bytes);
      shard.records.push_back(std::move(record.value));
    } else {
      shard.source = nullptr;
      shard.files.pop_back();
    }
    return {};
  }
  Result<bool> read(Shard& shard, const std::string& file,
                    Record& record) const {
    if (shard.source == nullptr) {
      TAGFLOW_ASSIGN(const std::string path, host_->path_to_read(file));
      TAGFLOW_ASSIGN(shard.source, open_source(spec_.reader, file, path));
    }
    return shard.source->next(record);
  }

  void add_records(Shard& shard) {
    while (!shard.records.empty() && buffer_.size() < capacity_) {
      std::string& added = shard.records.back();
      const size_t place = numbers_() % (buffer_.size() + 1);
      if (place < buffer_.size()) std::swap(buffer_[place], added);
      buffer_.push_back(std::move(added));
      shard.records.pop_back();
      ++added_;
    }
  }

  Segment& segment_;
  const DatasetRef self_;
  const RecordInputSpec spec_;
  const std::shared_ptr<const HostAccess> host_;
  size_t capacity_;  // of the buffer; never more than an epoch has
  std::mt19937_64 numbers_;
  int64_t epoch_ = 0;
  size_t added_ = 0;           // records of the epoch
  std::vector<Shard> shards_;  // which have more
  size_t at_ = 0;              // the shard that is next
  std::vector<std::string> buffer_;
  MemoryCharge charge_;  // of the records of the shards and the buffer
  Tensor batch_;
  int64_t filled_ = 0;  // rows of the batch
  Status failed_;       // for ever
};

class RecordInputKernel final : public AsyncKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(RecordInputSpec spec, RecordInputSpec::make(info));
    return std::unique_ptr<Kernel>(
        new RecordInputKernel(info, std::move(spec)));
  }

  void compute_async(KernelContext& context, Completion done) const override {
    const auto object = resource_.find_or_make(
        context, [&]() -> Result<Ref<StateObject>> { return start(context); });
    if (!object.ok()) return done(object.status());
    const auto& iterator = static_cast<const Iterator&>(**object);
    const auto pipeline = iterator.pipeline();
    if (pipeline == nullptr) return done(iterator.not_initialised());
    pipeline->ask(std::make_shared<WaitingKernel>(context, std::move(done),
                                                  element_spec_));
  }
  bool is_bookkeeping() const override { return true; }

  std::string describe_wait(const KernelContext&) const override {
    return fmt::format("{} makes its next batch", resource_.key().describe());
  }

 private:
  RecordInputKernel(const KernelInfo& info, RecordInputSpec spec)
      : resource_(info),
        spec_(std::move(spec)),
        element_spec_{{DataType::kString}, {PartialShape({spec_.batch_size})}} {
  }

  Result<Ref<StateObject>> start(const KernelContext& context) const {
    TAGFLOW_RETURN_IF_ERROR(files_of(context).status());
    DatasetParts parts{
        kInfiniteCardinality,
        [spec = spec_, host = shared_host_access_of(context)](
            Segment& segment, const Dataset& self) -> Result<StagePtr> {
          return StagePtr(std::make_unique<AheadStage>(
              segment,
              [=, self = DatasetRef(&self)](Segment& its) -> Result<StagePtr> {
                return StagePtr(
                    std::make_unique<RecordInputStage>(its, *self, spec, host));
              },
              /*capacity=*/2));
        }};
    auto iterator = make_ref_counted<Iterator>(element_spec_);
    TAGFLOW_RETURN_IF_ERROR(
        iterator
            ->start(context, DatasetRef(make_ref_counted<Dataset>(
                                 context.node().op(), context.node().name(),
                                 element_spec_, std::move(parts))))
            .status());
    return Ref<StateObject>(std::move(iterator));
  }

  const ResourceOp resource_;
  const RecordInputSpec spec_;
  const ElementSpec element_spec_;
};

}  // namespace

void register_dataset_record_input_kernels(KernelRegistry& registry) {
  registry.add<RecordInputKernel>("RecordInput");
}

}  // namespace tagflow::devices
