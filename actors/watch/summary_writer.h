// SummaryWriter: event files for TensorBoard, written from C++.
//
//   auto writer = actors::SummaryWriter::open("runs/first").value();
//   writer->graph(graph);
//   for (int64_t step = 1; step <= 100; ++step)
//     writer->scalar("loss", train(step), step);
//   writer->close();
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tensorflow {
class Event;
class Summary;
}  // namespace tensorflow

namespace tagflow::checkpoint {
class EventWriter;
}

namespace tagflow::graph {
class Graph;
}

namespace tagflow::actors {

struct SummaryOptions {
  // So many records are written together, or what is there after this time.
  size_t most_records = 10;
  std::chrono::milliseconds flush_time{10'000};
  std::string suffix;  // of the file's name
};

// Writes a new event file in the folder of a run. TensorBoard groups what it
// shows by tags, whose parts are separated by slashes, and by the folders of
// runs.
//
// Records are gathered, and written by a thread of the writer; so an error of
// the disk is returned by a later call. What is written stays whole if the disk
// is full: then records wait, up to 64 MiB of them, and go to a new file.
// Messages of errors begin with "[events]". InvalidArgument for tensors that do
// not fit. Thread-safe, except for the destructor, which closes it.
class SummaryWriter {
 public:
  // Makes the folder if it is missing. Errors of making folder and file.
  static Result<std::unique_ptr<SummaryWriter>> open(
      std::string folder, const SummaryOptions& options = {});
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;
  ~SummaryWriter();

  Status scalar(std::string_view tag, double value, int64_t step);
  // How the numbers of a tensor are spread. All must be finite.
  Status histogram(std::string_view tag, const Tensor& values, int64_t step);
  // The first `most` pictures of a batch, [batch, height, width, channels] of
  // 1, 3 or 4 channels: uint8 as it is; float, half and double are scaled, by
  // what is finite in a picture, and other pixels become red.
  Status pictures(std::string_view tag, const Tensor& pictures, int64_t step,
                  int64_t most = 3);
  // The first `most` sounds of a batch: floats from -1 to 1, [batch, frames] or
  // [batch, frames, channels].
  Status sounds(std::string_view tag, const Tensor& sounds, float rate,
                int64_t step, int64_t most = 3);
  // Markdown.
  Status text(std::string_view tag, std::string_view text, int64_t step);
  // What summary ops output. DataLoss if it is something else.
  Status summary(std::string_view bytes, int64_t step);
  // The graph, for which name scopes are boxes. Errors of write_graphdef().
  Status graph(const graph::Graph& graph);
  // The bytes of run_metadata() (actors/watch/step_stats.h), which TensorBoard
  // offers by this tag in its graph.
  Status run_metadata(std::string_view tag, std::string bytes, int64_t step);

  // Says that a run goes on, and its next step is this one: viewers drop what
  // earlier files of the folder have from there on.
  Status resume(int64_t next_step);

  // Waits until all that was added is written. Errors of writing.
  Status flush();
  // flush(), and the end: nothing can be added any more.
  Status close();
  // Of the file.
  std::string path() const;

 private:
  explicit SummaryWriter(std::unique_ptr<checkpoint::EventWriter> events);
  // Adds what `fill` puts into a summary.
  template <class F>
  Status add(int64_t step, const F& fill);

  const std::unique_ptr<checkpoint::EventWriter> events_;
};

}  // namespace tagflow::actors
