#include "devices/files/event_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "devices/files/record_file.h"
#include "graph/fault.h"
#include "graph/proto/event.pb.h"

namespace tagflow::checkpoint {
namespace {

constexpr const char* kFileVersion = "brain.Event:2";
constexpr const char* kWriterName = "tagflow";
// Written by one call, at most, unless a record is larger.
constexpr size_t kMostAtOnce = size_t{4} << 20;

Result<std::string> record_of(tensorflow::Event& event, double now) {
  if (event.wall_time() == 0) event.set_wall_time(now);
  const size_t bytes = event.ByteSizeLong();
  if (bytes > size_t(std::numeric_limits<int32_t>::max()))
    return error(Code::kResourceExhausted,
                 "[events] an event of {} bytes is too large for its file",
                 bytes);
  std::string record;
  append_record(record, event.SerializeAsString());
  return record;
}

}  // namespace

EventWriter::EventWriter(std::string folder, EventWriterOptions options)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      files_(options_.files != nullptr ? *options_.files : local_files()) {}

Result<std::unique_ptr<EventWriter>> EventWriter::open(
    std::string folder, const EventWriterOptions& options) {
  std::unique_ptr<EventWriter> writer(
      new EventWriter(std::move(folder), options));
  TAGFLOW_RETURN_IF_ERROR(writer->begin_file());
  EventWriter* const self = writer.get();
  TAGFLOW_RETURN_IF_ERROR(guarded("events", [self] {
    self->thread_ = std::thread([self] { self->work(); });
    self->has_thread_ = true;
  }));
  return writer;
}

EventWriter::~EventWriter() { (void)close(); }

Status EventWriter::begin_file() {
  TAGFLOW_ASSIGN(std::unique_ptr<EventFile> file,
                 EventFile::create(files_, folder_, options_.suffix));
  tensorflow::Event first;
  first.set_file_version(kFileVersion);
  first.mutable_source_metadata()->set_writer(kWriterName);
  TAGFLOW_ASSIGN(const std::string record, record_of(first, files_.now()));
  size_t written = 0;
  TAGFLOW_RETURN_IF_ERROR(file->append(record, written));
  const std::lock_guard lock(mutex_);
  path_ = file->path();
  file_ = std::move(file);
  return {};
}

Status EventWriter::add(tensorflow::Event event) {
  TAGFLOW_ASSIGN(std::string record, record_of(event, files_.now()));
  const std::lock_guard lock(mutex_);
  if (closing_)
    return error(Code::kFailedPrecondition,
                 "[events] the writer of \"{}\" is closed", folder_);
  if (waiting_bytes_ > 0 && waiting_bytes_ + record.size() > kMostBytes) {
    wake_.notify_one();
    if (!last_.ok()) return last_;
    return error(Code::kResourceExhausted,
                 "[events] {} bytes wait for the file in \"{}\"",
                 waiting_bytes_, folder_);
  }
  waiting_bytes_ += record.size();
  waiting_.push_back(std::move(record));
  ++added_;
  if (waiting_.size() >= options_.most_records || waiting_bytes_ >= kMostAtOnce)
    wake_.notify_one();
  return {};
}

Status EventWriter::flush() {
  std::unique_lock lock(mutex_);
  const uint64_t wanted = added_;
  wanted_ = std::max(wanted_, wanted);
  wake_.notify_one();
  done_.wait(lock, [&] { return attempted_ >= wanted || closing_; });
  return last_;
}

Status EventWriter::close() {
  std::thread ending;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    ending = std::move(thread_);
  }
  wake_.notify_one();
  done_.notify_all();
  if (ending.joinable()) ending.join();
  std::unique_lock lock(mutex_);
  // If somebody else closes it at once, the thread is theirs.
  done_.wait(lock, [this] { return is_over_ || !has_thread_; });
  return last_;
}

std::string EventWriter::path() const {
  const std::lock_guard lock(mutex_);
  return path_;
}

Status EventWriter::write_records(std::deque<std::string>& records) {
  while (!records.empty()) {
    if (file_ == nullptr) TAGFLOW_RETURN_IF_ERROR(begin_file());
    std::string bytes;
    size_t count = 0;
    for (const std::string& record : records) {
      if (count > 0 && bytes.size() + record.size() > kMostAtOnce) break;
      bytes += record;
      ++count;
    }
    size_t written = 0;
    Status status = file_->append(bytes, written);
    while (count-- > 0 && written >= records.front().size()) {
      written -= records.front().size();
      records.pop_front();
    }
    if (status.ok()) continue;
    file_ = nullptr;
    return status;
  }
  return {};
}

Status EventWriter::write_waiting(std::unique_lock<std::mutex>& lock) {
  std::deque<std::string> records;
  records.swap(waiting_);
  const uint64_t attempted = added_;
  lock.unlock();
  Status status = guarded("events", [&] { return write_records(records); });
  lock.lock();
  // What could not be written stays before what was added meanwhile.
  while (!records.empty()) {
    waiting_.push_front(std::move(records.back()));
    records.pop_back();
  }
  waiting_bytes_ = 0;
  for (const std::string& record : waiting_) waiting_bytes_ += record.size();
  attempted_ = attempted;
  last_ = status;
  done_.notify_all();
  return status;
}

void EventWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, options_.flush_time, [this] {
      return closing_ || wanted_ > attempted_ ||
             (waiting_.size() >= options_.most_records && last_.ok()) ||
             (waiting_bytes_ >= kMostAtOnce && last_.ok());
    });
    const bool is_last = closing_;
    if (!waiting_.empty() || wanted_ > attempted_) (void)write_waiting(lock);
    if (!is_last) continue;
    is_over_ = true;
    done_.notify_all();
    return;
  }
}

}  // namespace tagflow::checkpoint
