// SummaryWriter, CreateSummaryFileWriter, the Write...Summary ops, ImportEvent,
// FlushSummaryWriter, CloseSummaryWriter.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "devices/files/event_writer.h"
#include "devices/files/host_access.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/codec/inputs.h"
#include "devices/media/summary_values.h"
#include "devices/state/handle_input.h"
#include "devices/state/resource_op.h"
#include "devices/state/state_kind.h"
#include "graph/proto/event.pb.h"
#include "graph/proto/graph.pb.h"

namespace tagflow::devices {
namespace {

using checkpoint::EventWriter;
using checkpoint::EventWriterOptions;

// The step is over: it must not change what outlives it.
Status too_late() { return error(Code::kCancelled, "the step is over"); }

// Where a graph's summaries go. Life cycle: *named*, without a file; *open*
// from CreateSummaryFileWriter on; *named* again after CloseSummaryWriter;
// *ended* with its container, or with its session, which writes what waits.
class WriterState final : public StateObject {
 public:
  static constexpr std::string_view kKind = kSummaryWriterKind;

  explicit WriterState(std::string name) : name_(std::move(name)) {}

  std::string describe() const override {
    return fmt::format("{} \"{}\"", kKind, name_);
  }
  // Opens a file, unless there is one. The disk may be slow: neither the gate
  // of the step nor the lock is held meanwhile. Cancelled, without a new file,
  // if the step has been answered by then.
  Status open(const KernelContext& context, const std::string& folder,
              const EventWriterOptions& options) {
    const std::lock_guard one_at_a_time(opening_mutex_);
    {
      const std::lock_guard lock(mutex_);
      TAGFLOW_RETURN_IF_ERROR(ended());
      if (writer_ != nullptr) return {};
    }
    TAGFLOW_ASSIGN(std::shared_ptr<EventWriter> made,
                   EventWriter::open(folder, options));
    Status status = keep(context, made);
    if (status.ok()) return {};
    static_cast<void>(made->close());
    static_cast<void>(checkpoint::local_files().remove(made->path()));
    return status;
  }
  // NotFound if it is not open.
  Result<std::shared_ptr<EventWriter>> writer() const {
    const std::lock_guard lock(mutex_);
    TAGFLOW_RETURN_IF_ERROR(ended());
    if (writer_ == nullptr) return no_file();
    return writer_;
  }
  Result<std::shared_ptr<EventWriter>> take() {
    const std::lock_guard lock(mutex_);
    TAGFLOW_RETURN_IF_ERROR(ended());
    if (writer_ == nullptr) return no_file();
    return std::exchange(writer_, nullptr);
  }

 protected:
  void on_end(const Status&) override {
    std::shared_ptr<EventWriter> writer;
    {
      const std::lock_guard lock(mutex_);
      writer.swap(writer_);
    }
    if (writer != nullptr) (void)writer->close();
  }

 private:
  Status keep(const KernelContext& context, std::shared_ptr<EventWriter> made) {
    const Commit commit = context.commit();
    if (!commit) return too_late();
    const std::lock_guard lock(mutex_);
    TAGFLOW_RETURN_IF_ERROR(ended());
    writer_ = std::move(made);
    return {};
  }
  Status no_file() const {
    return error(Code::kNotFound, "{} has no file", describe());
  }

  const std::string name_;
  std::mutex opening_mutex_;  // while a file is opened; before the other one
  mutable std::mutex mutex_;  // guards the below
  std::shared_ptr<EventWriter> writer_;  // null unless it is open
};

class SummaryWriterKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit SummaryWriterKernel(const KernelInfo& info) : resource_(info) {}

  Status compute(KernelContext& context) const override {
    return resource_.set_handle(context, [this]() -> Result<Ref<StateObject>> {
      return Ref<StateObject>(
          make_ref_counted<WriterState>(resource_.key().name));
    });
  }
  bool is_bookkeeping() const override { return true; }

 private:
  const ResourceOp resource_;
};

// A kernel that opens, writes or closes files. Never folded.
class WriterKernel : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  Status compute(KernelContext& context) const final {
    TAGFLOW_ASSIGN(WriterState* const state,
                   handle_input<WriterState>(context, 0));
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    return prefixed(context, use(context, *host, *state));
  }
  double cost(const KernelContext&) const override {
    return 2 * kMostFoldedNanoseconds;
  }

 private:
  virtual Status use(const KernelContext& context, const HostAccess& host,
                     WriterState& state) const = 0;
};

class CreateSummaryFileWriterKernel final : public WriterKernel {
 public:
  explicit CreateSummaryFileWriterKernel(const KernelInfo&) {}

 private:
  Status use(const KernelContext& context, const HostAccess& host,
             WriterState& state) const override {
    TAGFLOW_ASSIGN(const std::string folder, text_input(context, 1, "logdir"));
    TAGFLOW_ASSIGN(const int32_t most,
                   number_input<int32_t>(context, 2, "max_queue"));
    TAGFLOW_ASSIGN(const int32_t time,
                   number_input<int32_t>(context, 3, "flush_millis"));
    EventWriterOptions options;
    TAGFLOW_ASSIGN(options.suffix, text_input(context, 4, "filename_suffix"));
    if (options.suffix.find_first_of(std::string_view("/\0", 2)) !=
        std::string::npos)
      return error(Code::kInvalidArgument,
                   "filename_suffix {:?} is not a part of a name",
                   options.suffix);
    options.most_records = size_t(std::max(most, 1));
    options.flush_time = std::chrono::milliseconds(std::max(time, 1));
    TAGFLOW_ASSIGN(const std::string path, host.path_to_write(folder));
    return state.open(context, path, options);
  }
};

class FlushSummaryWriterKernel final : public WriterKernel {
 public:
  explicit FlushSummaryWriterKernel(const KernelInfo&) {}

 private:
  Status use(const KernelContext&, const HostAccess&,
             WriterState& state) const override {
    TAGFLOW_ASSIGN(const auto writer, state.writer());
    return writer->flush();
  }
};

class CloseSummaryWriterKernel final : public WriterKernel {
 public:
  explicit CloseSummaryWriterKernel(const KernelInfo&) {}

 private:
  Status use(const KernelContext& context, const HostAccess&,
             WriterState& state) const override {
    std::shared_ptr<EventWriter> writer;
    {
      const Commit commit = context.commit();
      if (!commit) return too_late();
      TAGFLOW_ASSIGN(writer, state.take());
    }
    // The disk may be slow.
    return writer->close();
  }
};

// Adds one event, whose step is input 1.
class AddEventKernel : public WriterKernel {
 private:
  // What the event says.
  virtual Status fill(const KernelContext& context,
                      tensorflow::Event& event) const = 0;

  Status use(const KernelContext& context, const HostAccess&,
             WriterState& state) const override {
    TAGFLOW_ASSIGN(const auto writer, state.writer());
    tensorflow::Event event;
    if (has_step()) {
      TAGFLOW_ASSIGN(const int64_t step,
                     number_input<int64_t>(context, 1, "step"));
      event.set_step(step);
    }
    TAGFLOW_RETURN_IF_ERROR(fill(context, event));
    const Commit commit = context.commit();
    return commit ? writer->add(std::move(event)) : too_late();
  }
  virtual bool has_step() const { return true; }
};

class WriteScalarSummaryKernel final : public AddEventKernel {
 public:
  explicit WriteScalarSummaryKernel(const KernelInfo&) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Event& event) const override {
    TAGFLOW_ASSIGN(const std::string tag, text_input(context, 2, "tag"));
    return media::add_scalar_value(tag, context.input(3),
                                   *event.mutable_summary());
  }
};

class WriteHistogramSummaryKernel final : public AddEventKernel {
 public:
  explicit WriteHistogramSummaryKernel(const KernelInfo&) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Event& event) const override {
    TAGFLOW_ASSIGN(const std::string tag, text_input(context, 2, "tag"));
    return media::add_histogram_value(
        tag, context.input(3), interruption(context), *event.mutable_summary());
  }
};

class WriteImageSummaryKernel final : public AddEventKernel {
 public:
  explicit WriteImageSummaryKernel(const KernelInfo& info)
      : most_(attr_of<int64_t>(info, "max_images")) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Event& event) const override {
    TAGFLOW_ASSIGN(const std::string tag, text_input(context, 2, "tag"));
    return media::add_picture_values(
        tag, context.input(3), {most_, context.input(4)}, interruption(context),
        *event.mutable_summary());
  }

  const int64_t most_;
};

class WriteAudioSummaryKernel final : public AddEventKernel {
 public:
  explicit WriteAudioSummaryKernel(const KernelInfo& info)
      : most_(attr_of<int64_t>(info, "max_outputs")) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Event& event) const override {
    TAGFLOW_ASSIGN(const std::string tag, text_input(context, 2, "tag"));
    TAGFLOW_ASSIGN(const float rate,
                   number_input<float>(context, 4, "sample_rate"));
    return media::add_sound_values(tag, context.input(3), rate, most_,
                                   interruption(context),
                                   *event.mutable_summary());
  }

  const int64_t most_;
};

class WriteSummaryKernel final : public AddEventKernel {
 public:
  explicit WriteSummaryKernel(const KernelInfo&) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Event& event) const override {
    TAGFLOW_ASSIGN(const std::string tag, text_input(context, 3, "tag"));
    TAGFLOW_ASSIGN(const std::string metadata,
                   text_input(context, 4, "summary_metadata"));
    auto& summary = *event.mutable_summary();
    TAGFLOW_RETURN_IF_ERROR(media::add_tensor_value(context.input(2), summary));
    auto* const value = summary.mutable_value(0);
    value->set_tag(tag);
    // As TensorFlow does, what is not a message counts as far as it can be
    // read.
    if (!metadata.empty())
      (void)value->mutable_metadata()->ParseFromString(metadata);
    return {};
  }
};

// Summaries that other ops have made.
class WriteRawProtoSummaryKernel final : public AddEventKernel {
 public:
  explicit WriteRawProtoSummaryKernel(const KernelInfo&) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Event& event) const override {
    for (const std::string& text : context.input(2).flat<std::string>()) {
      tensorflow::Summary summary;
      if (!summary.ParseFromString(text))
        return error(Code::kDataLoss, "{} bytes are not a summary",
                     text.size());
      event.mutable_summary()->MergeFrom(summary);
    }
    return {};
  }
};

class WriteGraphSummaryKernel final : public AddEventKernel {
 public:
  explicit WriteGraphSummaryKernel(const KernelInfo&) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Event& event) const override {
    TAGFLOW_ASSIGN(std::string bytes,
                   number_input<std::string>(context, 2, "tensor"));
    tensorflow::GraphDef graph;
    if (!graph.ParseFromString(bytes))
      return error(Code::kDataLoss, "{} bytes are not a GraphDef",
                   bytes.size());
    event.set_graph_def(std::move(bytes));
    return {};
  }
};

// A whole event, with its step and its time.
class ImportEventKernel final : public AddEventKernel {
 public:
  explicit ImportEventKernel(const KernelInfo&) {}

 private:
  bool has_step() const override { return false; }
  Status fill(const KernelContext& context,
              tensorflow::Event& event) const override {
    TAGFLOW_ASSIGN(const std::string bytes, text_input(context, 1, "event"));
    if (!event.ParseFromString(bytes))
      return error(Code::kDataLoss, "{} bytes are not an event", bytes.size());
    return {};
  }
};

}  // namespace

void register_summary_writer_kernels(KernelRegistry& registry) {
  registry.add<SummaryWriterKernel>("SummaryWriter");
  registry.add<CreateSummaryFileWriterKernel>("CreateSummaryFileWriter");
  registry.add<FlushSummaryWriterKernel>("FlushSummaryWriter");
  registry.add<CloseSummaryWriterKernel>("CloseSummaryWriter");
  registry.add<WriteScalarSummaryKernel>("WriteScalarSummary");
  registry.add<WriteHistogramSummaryKernel>("WriteHistogramSummary");
  registry.add<WriteImageSummaryKernel>("WriteImageSummary");
  registry.add<WriteAudioSummaryKernel>("WriteAudioSummary");
  registry.add<WriteSummaryKernel>("WriteSummary");
  registry.add<WriteRawProtoSummaryKernel>("WriteRawProtoSummary");
  registry.add<WriteGraphSummaryKernel>("WriteGraphSummary");
  registry.add<ImportEventKernel>("ImportEvent");
}

}  // namespace tagflow::devices
