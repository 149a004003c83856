// Workloads: files of tensors.
//
//   checkpoint   a bundle of --bytes of floats, in 16 tensors: written, and
//                read again, with checksums, from and to the page cache, by one
//                thread. The value is what is written; the config has what is
//                read, what is written to the disk (fsync), and, for
//                comparison, the same bytes written to a file and nothing else,
//                and copies of the tensors in memory. Every write makes new
//                files: those of the one before are removed ahead of its time,
//                since to replace a file is to free its pages
#include "apps/bench/checkpoint_files.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {

Result<Measurement> measure_checkpoint(const BenchOptions& options) {
  TAGFLOW_ASSIGN(CheckpointFiles files, CheckpointFiles::make(options.bytes));
  const int repeats = options.repeats;
  // Alternates between the measurements, since the speed of memory varies over
  // time.
  std::vector<double> raw, written;
  for (int i = 0; i <= repeats; ++i) {
    TAGFLOW_ASSIGN(const double bare, files.raw_write_seconds());
    TAGFLOW_ASSIGN(const double took, files.write_seconds());
    if (i == 0) continue;  // not counted
    raw.push_back(bare);
    written.push_back(took);
  }
  TAGFLOW_ASSIGN(const double read,
                 median_of(repeats, [&] { return files.read_seconds(); }));
  TAGFLOW_ASSIGN(const double copied,
                 median_of(repeats, [&] { return files.copy_seconds(); }));
  TAGFLOW_ASSIGN(const double synced,
                 median_of(1, [&] { return files.write_seconds(true); }));
  const auto speed = [&](double seconds) {
    return files.bytes() / seconds / 1e9;
  };
  return Measurement{"checkpoint",
                     speed(median(std::move(written))),
                     "GB/s",
                     {{"bytes", files.bytes()},
                      {"read", speed(read)},
                      {"written_to_disk", speed(synced)},
                      {"raw_write", speed(median(std::move(raw)))},
                      {"copied_in_memory", speed(copied)},
                      {"repeats", repeats}}};
}

}  // namespace tagflow::apps
