#include "devices/kernels/reader/reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "devices/files/host_access.h"
#include "devices/state/guard.h"
#include "devices/string_writer.h"
#include "graph/counted.h"
#include "graph/graph.h"
#include "graph/proto/reader.pb.h"

namespace tagflow::devices {

namespace {

// About so much is read ahead.
constexpr size_t kBytesAhead = size_t(1) << 20;
constexpr size_t kRecordsAhead = 1024;

// Takes one name out of a queue of names.
class TakeName final : public HandleKernel<Queue> {
 public:
  std::optional<Line> line() const override { return Line::kOut; }
  Status check(const KernelContext& context, const StateActor& actor,
               Errand&) const override {
    const auto& queue = static_cast<const Queue&>(actor);
    const std::vector<DataType>& types = queue.spec().types;
    if (types.size() == 1 && types[0] == DataType::kString) return {};
    return context.fail(
        "{} must have elements of one string, the name of a file",
        queue.describe());
  }
  Readiness readiness(const KernelContext&, const StateActor& actor,
                      const Errand&) const override {
    const auto& queue = static_cast<const Queue&>(actor);
    return queue.is_closed() || queue.available() > 0 ? Readiness::kWhole
                                                      : Readiness::kNotYet;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    auto& queue = static_cast<Queue&>(actor);
    if (queue.available() == 0)
      return error(Code::kOutOfRange,
                   "[{}] {} is closed and has insufficient elements "
                   "(requested 1, current size 0)",
                   context.node().op(), queue.describe());
    queue.take(context);
    return {};
  }
};

}  // namespace

// --- Names ------------------------------------------------------------------

// A request for a name, which no step owns.
class Reader::NameRequest {
 public:
  NameRequest(std::string_view op, const Tensor& queue) : queue_(queue) {
    // Kernels have nodes, by which messages name their ops.
    AttrMap attrs;
    if (op.starts_with("FixedLength")) attrs["record_bytes"] = int64_t(1);
    auto node = graph_.add("reader", op, {}, std::move(attrs));
    if (node.ok()) node_ = *node;
    step_.cancels = &cancels_;
  }

  const graph::Node* node() const { return node_; }
  void start(Completion done) {
    context_.emplace(node_, std::span(&queue_, 1), std::span(&name_, 1), &step_,
                     &tag_);
    run_kernel_async(kernel_, *context_, std::move(done));
  }
  void cancel() { cancels_.cancel(); }

  Status status;
  const Tensor& name() const { return name_; }

 private:
  graph::Graph graph_;
  const graph::Node* node_ = nullptr;
  Tensor queue_, name_;
  CancelList cancels_;
  StepInfo step_;
  Tag tag_;
  const TakeName kernel_;
  std::optional<KernelContext> context_;
};

Status Reader::request_name(const Tensor& queue) {
  request_ = std::make_shared<NameRequest>(spec_.name(), queue);
  if (request_->node() == nullptr)
    return error(Code::kInternal, "[{}] the op is not there", spec_.name());
  {
    const std::lock_guard lock(mutex_);
    queue_ = Ref<Queue>(state_object<Queue>(*queue.data<ResourceHandle>()));
  }
  background_ = Background::kName;
  request_->start(
      [reader = Ref<Reader>(this), request = request_.get()](Status status) {
        request->status = std::move(status);
        reader->wake();
      });
  return {};
}

void Reader::take_name() noexcept {
  const std::shared_ptr<NameRequest> request = std::exchange(request_, nullptr);
  {
    const std::lock_guard lock(mutex_);
    queue_ = {};
  }
  if (is_dropped_ && !request->status.ok()) return;
  if (!request->status.ok()) {
    failure_ = request->status;
    return;
  }
  failure_ = guarded("reader", [&]() -> Status {
    if (request->name().num_elements() != 1)
      return invalid_argument(
          "[{}] the name of a file must be a scalar, not {}", spec_.name(),
          request->name().describe());
    file_ = request->name().scalar_value<std::string>();
    has_file_ = true;
    ++started_;
    return {};
  });
}

// Nobody needs a name any more.
void Reader::on_lines_changed() noexcept {
  if (background_ == Background::kName && first(Line::kOut) == nullptr) {
    is_dropped_ = true;
    request_->cancel();
  }
}

// --- Files ------------------------------------------------------------------

// What the thread does at once, and its outcome.
struct Reader::Piece {
  std::shared_ptr<RecordSource> source;  // null: to be opened
  std::string path;
  int64_t skipped = 0;  // records before the first
  size_t wanted = 0;
  std::vector<Record> records;
  bool is_at_end = false;
  bool ends_at_once = false;
  Status status;

  Status read(const ReaderSpec& spec, const std::string& file) {
    if (source == nullptr) {
      TAGFLOW_ASSIGN(source, open_source(spec, file, path));
    }
    Record record;
    for (; skipped > 0; --skipped) {
      TAGFLOW_ASSIGN(const bool found, source->next(record));
      if (!found) break;
    }
    size_t bytes = 0;
    while (records.size() < wanted ||
           (bytes < kBytesAhead && records.size() < kRecordsAhead)) {
      TAGFLOW_ASSIGN(const bool found, source->next(record));
      if (!found) {
        is_at_end = true;
        return {};
      }
      bytes += record.bytes();
      records.push_back(std::move(record));
      if (source->is_over()) {
        is_at_end = ends_at_once = true;
        return {};
      }
    }
    return {};
  }
};

Status Reader::read_on(int64_t wanted) {
  piece_->source = source_;
  piece_->wanted =
      size_t(std::max<int64_t>(0, wanted - int64_t(records_.size())));
  const Status started = thread_->start(
      [reader = Ref<Reader>(this), piece = piece_, file = file_] {
        piece->status =
            guarded("reader", [&] { return piece->read(reader->spec_, file); });
        reader->wake();
      });
  if (started.ok()) background_ = Background::kRecords;
  return started;
}

void Reader::take_records() noexcept {
  const std::shared_ptr<Piece> piece = std::exchange(piece_, nullptr);
  if (is_dropped_) return;
  source_ = piece->source;
  is_at_end_ = piece->is_at_end;
  ends_at_once_ = piece->ends_at_once;
  failure_ = guarded("reader", [&]() -> Status {
    for (Record& record : piece->records) {
      bytes_ += record.bytes();
      records_.push_back(std::move(record));
    }
    return {};
  });
  if (failure_.ok() && !piece->status.ok())
    failure_ =
        std::move(piece->status)
            .with_prefix(fmt::format("[{}] \"{}\": ", spec_.name(), file_));
}

void Reader::on_woken() noexcept {
  const Background done = background_.exchange(Background::kNone);
  if (done == Background::kName) take_name();
  if (done == Background::kRecords) take_records();
  is_dropped_ = false;
}

void Reader::finish_file() noexcept {
  ++finished_;
  has_file_ = is_at_end_ = ends_at_once_ = false;
  given_ = 0;
  source_ = nullptr;
}

// --- Giving out -------------------------------------------------------------

Reader::Reader(std::string name, const ReaderSpec& spec)
    : name_(std::move(name)),
      spec_(spec),
      thread_(std::make_unique<FileThread>()) {}

Reader::~Reader() = default;

std::string Reader::describe() const {
  return fmt::format("{} \"{}\"", kKind, name_);
}

std::string Reader::describe_state() const {
  std::string text = describe();
  switch (background_.load()) {
    case Background::kNone:
      break;
    case Background::kName: {
      Ref<Queue> queue;
      {
        const std::lock_guard lock(mutex_);
        queue = queue_;
      }
      text += " waits for the name of a file";
      if (queue) text += ": " + queue->describe_state();
      break;
    }
    case Background::kRecords:
      text += " reads a file";
  }
  if (waiting(Line::kOut) > 0)
    text += fmt::format(", {} wait", counted(waiting(Line::kOut), "read"));
  return text;
}

bool Reader::can_give(int64_t wanted) const {
  if (records_.empty()) return false;
  // An error is behind them, too.
  return int64_t(records_.size()) >= wanted || is_at_end_ || !failure_.ok();
}

Status Reader::advance(const KernelContext& context, int64_t wanted,
                       const Tensor& queue) {
  if (!failure_.ok()) {
    // The file is given up.
    if (has_file_) {
      has_file_ = is_at_end_ = ends_at_once_ = false;
      given_ = 0;
      source_ = nullptr;
    }
    return std::exchange(failure_, Status());
  }
  if (has_file_ && is_at_end_) finish_file();
  if (!has_file_) return request_name(queue);
  piece_ = std::make_shared<Piece>();
  if (source_ == nullptr) {
    piece_->skipped = given_;
    if (spec_.kind != ReaderSpec::Kind::kIdentity) {
      TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
      auto path = path_to_read(spec_, *host, file_);
      if (!path.ok()) {
        has_file_ = false;
        given_ = 0;
        return path.status();
      }
      piece_->path = *std::move(path);
    }
  }
  return read_on(wanted);
}

std::string Reader::key_of(const Record& record) const {
  if (!record.key.empty()) return record.key;
  return record.number < 0 ? file_ : fmt::format("{}:{}", file_, record.number);
}

void Reader::note_taken() noexcept {
  if (records_.empty() && is_at_end_ && ends_at_once_) return finish_file();
  if (bytes_ >= kBytesAhead / 2 || records_.size() >= kRecordsAhead / 2) return;
  if (has_file_ && !is_at_end_ && failure_.ok() && !is_busy() &&
      source_ != nullptr)
    // If that fails, the next operation tries again.
    (void)guarded("reader", [&] {
      piece_ = std::make_shared<Piece>();
      return read_on(0);
    });
}

Status Reader::give_one(KernelContext& context) {
  TAGFLOW_ASSIGN(Tensor * key, context.allocate_output(0, Shape{}));
  TAGFLOW_ASSIGN(Tensor * value, context.allocate_output(1, Shape{}));
  Record& record = records_.front();
  bytes_ -= record.bytes();
  StringWriter(*key).take(*key->mutable_data<std::string>(), key_of(record));
  StringWriter(*value).take(*value->mutable_data<std::string>(),
                            std::move(record.value));
  records_.pop_front();
  ++given_;
  ++produced_;
  note_taken();
  return {};
}

Status Reader::give(KernelContext& context, int64_t wanted) {
  const int64_t count = std::min(wanted, int64_t(records_.size()));
  TAGFLOW_ASSIGN(Tensor * keys, context.allocate_output(0, {count}));
  TAGFLOW_ASSIGN(Tensor * values, context.allocate_output(1, {count}));
  const StringWriter key_writer(*keys), value_writer(*values);
  const bool is_counted = context.allocator().counts_outside();
  size_t bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    key_writer.take(keys->mutable_data<std::string>()[i],
                    key_of(records_[size_t(i)]));
    std::string& to = values->mutable_data<std::string>()[i];
    bytes += records_[size_t(i)].bytes();
    std::string& value = records_[size_t(i)].value;
    // Where memory counts, taking more of it may fail: then no record is lost.
    if (is_counted) {
      value_writer.assign(to, value);
    } else {
      to = std::move(value);
    }
  }
  bytes_ -= bytes;
  records_.erase(records_.begin(), records_.begin() + count);
  given_ += count;
  produced_ += count;
  // Whoever gets fewer than wanted has seen the end.
  if (records_.empty() && is_at_end_ && count < wanted && has_file_)
    finish_file();
  note_taken();
  return {};
}

// --- State ------------------------------------------------------------------

std::string Reader::state() const {
  tensorflow::ReaderBaseState state;
  state.set_work_started(started_);
  state.set_work_finished(finished_);
  state.set_num_records_produced(produced_);
  if (has_file_) {
    state.set_current_work(file_);
    state.set_tagflow_records_of_work(given_);
  }
  return state.SerializeAsString();
}

Status Reader::restore_state(const KernelContext& context,
                             const std::string& bytes) {
  tensorflow::ReaderBaseState state;
  if (bytes.size() > size_t(std::numeric_limits<int32_t>::max()) ||
      !state.ParseFromString(bytes))
    return context.fail("{} bytes are not the state of {}", bytes.size(),
                        describe());
  const int64_t begun = state.work_started(), over = state.work_finished();
  if (over < 0 || begun < over || begun > over + 1 ||
      state.num_records_produced() < 0 || state.tagflow_records_of_work() < 0 ||
      state.tagflow_records_of_work() > state.num_records_produced())
    return context.fail("the state is of no reader: {}",
                        state.ShortDebugString());
  reset();
  started_ = begun;
  finished_ = over;
  produced_ = state.num_records_produced();
  given_ = state.tagflow_records_of_work();
  has_file_ = begun > over;
  if (has_file_) file_ = state.current_work();
  return {};
}

void Reader::reset() noexcept {
  records_.clear();
  bytes_ = 0;
  source_ = nullptr;
  has_file_ = is_at_end_ = ends_at_once_ = false;
  given_ = started_ = finished_ = produced_ = 0;
  failure_ = {};
  is_dropped_ = is_busy();
  if (background_ == Background::kName) request_->cancel();
}

Result<std::vector<Tensor>> Reader::save() const {
  return std::vector<Tensor>{numbers_tensor({}), Tensor::scalar(state())};
}

Status Reader::restore(const KernelContext& context,
                       std::span<const Tensor> saved) {
  ContentsReader reader(context, saved);
  TAGFLOW_RETURN_IF_ERROR(reader.numbers().status());
  TAGFLOW_ASSIGN(const auto tensors, reader.tensors(1));
  if (tensors[0].dtype() != DataType::kString ||
      tensors[0].num_elements() != 1 ||
      !restore_state(context, tensors[0].scalar_value<std::string>()).ok())
    return damaged_contents(context);
  return reader.end();
}

}  // namespace tagflow::devices
