#include "actors/watch/summary_writer.h"

#include <utility>

#include "devices/files/event_writer.h"
#include "devices/media/summary_values.h"
#include "graph/fault.h"
#include "graph/file/graphdef.h"
#include "graph/proto/event.pb.h"

namespace tagflow::actors {
namespace {

void never_interrupted() {}

}  // namespace

SummaryWriter::SummaryWriter(std::unique_ptr<checkpoint::EventWriter> events)
    : events_(std::move(events)) {}

SummaryWriter::~SummaryWriter() = default;

Result<std::unique_ptr<SummaryWriter>> SummaryWriter::open(
    std::string folder, const SummaryOptions& options) {
  checkpoint::EventWriterOptions own;
  own.most_records = options.most_records;
  own.flush_time = options.flush_time;
  own.suffix = options.suffix;
  auto events = checkpoint::EventWriter::open(std::move(folder), own);
  if (!events.ok()) return std::move(events).status().with_prefix("[events] ");
  return std::unique_ptr<SummaryWriter>(
      new SummaryWriter(std::move(events).value()));
}

template <class F>
Status SummaryWriter::add(int64_t step, const F& fill) {
  return guarded("events", [&]() -> Status {
    tensorflow::Event event;
    event.set_step(step);
    Status status = fill(*event.mutable_summary());
    if (!status.ok()) return std::move(status).with_prefix("[events] ");
    return events_->add(std::move(event));
  });
}

Status SummaryWriter::scalar(std::string_view tag, double value, int64_t step) {
  return add(step, [&](tensorflow::Summary& summary) {
    auto* const added = summary.add_value();
    added->set_tag(std::string(tag));
    added->set_simple_value(float(value));
    return Status();
  });
}

Status SummaryWriter::histogram(std::string_view tag, const Tensor& values,
                                int64_t step) {
  return add(step, [&](tensorflow::Summary& summary) {
    return media::add_histogram_value(std::string(tag), values,
                                      never_interrupted, summary);
  });
}

Status SummaryWriter::pictures(std::string_view tag, const Tensor& pictures,
                               int64_t step, int64_t most) {
  const media::PictureValues options{most,
                                     Tensor::vector<uint8_t>({255, 0, 0, 255})};
  return add(step, [&](tensorflow::Summary& summary) {
    return media::add_picture_values(std::string(tag), pictures, options,
                                     never_interrupted, summary);
  });
}

Status SummaryWriter::sounds(std::string_view tag, const Tensor& sounds,
                             float rate, int64_t step, int64_t most) {
  return add(step, [&](tensorflow::Summary& summary) {
    return media::add_sound_values(std::string(tag), sounds, rate, most,
                                   never_interrupted, summary);
  });
}

Status SummaryWriter::text(std::string_view tag, std::string_view text,
                           int64_t step) {
  return add(step, [&](tensorflow::Summary& summary) -> Status {
    TAGFLOW_RETURN_IF_ERROR(media::add_tensor_value(
        Tensor::of<std::string>({1}, {std::string(text)}), summary));
    auto* const added = summary.mutable_value(0);
    added->set_tag(std::string(tag));
    auto* const metadata = added->mutable_metadata();
    metadata->mutable_plugin_data()->set_plugin_name("text");
    metadata->set_data_class(tensorflow::DATA_CLASS_TENSOR);
    return {};
  });
}

Status SummaryWriter::summary(std::string_view bytes, int64_t step) {
  return add(step, [&](tensorflow::Summary& summary) {
    if (summary.ParseFromString(std::string(bytes))) return Status();
    return error(Code::kDataLoss, "{} bytes are not a summary", bytes.size());
  });
}

Status SummaryWriter::graph(const graph::Graph& graph) {
  return guarded("events", [&]() -> Status {
    tensorflow::Event event;
    TAGFLOW_ASSIGN(*event.mutable_graph_def(), graph::write_graphdef(graph));
    return events_->add(std::move(event));
  });
}

Status SummaryWriter::run_metadata(std::string_view tag, std::string bytes,
                                   int64_t step) {
  return guarded("events", [&]() -> Status {
    tensorflow::Event event;
    event.set_step(step);
    auto* const tagged = event.mutable_tagged_run_metadata();
    tagged->set_tag(std::string(tag));
    tagged->set_run_metadata(std::move(bytes));
    return events_->add(std::move(event));
  });
}

Status SummaryWriter::resume(int64_t next_step) {
  return guarded("events", [&]() -> Status {
    tensorflow::Event event;
    event.set_step(next_step);
    event.mutable_session_log()->set_status(tensorflow::SessionLog::START);
    return events_->add(std::move(event));
  });
}

Status SummaryWriter::flush() { return events_->flush(); }

Status SummaryWriter::close() { return events_->close(); }

std::string SummaryWriter::path() const { return events_->path(); }

}  // namespace tagflow::actors
