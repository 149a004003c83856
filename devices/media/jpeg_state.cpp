#include "devices/media/jpeg_state.h"

namespace tagflow::media {
namespace {

// A file with more is made to take time: photographs have about ten.
constexpr int kMostScans = 500;

[[noreturn]] void keep_error(j_common_ptr jpeg) {
  auto* const errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  errors->base.format_message(jpeg, errors->text.data());
  std::longjmp(errors->back, 1);
}

void drop_message(j_common_ptr, int) {}
void drop_output(j_common_ptr) {}

void monitor(j_common_ptr jpeg) {
  auto* const progress = reinterpret_cast<JpegProgress*>(jpeg->progress);
  // Nothing may be thrown through the library.
  try {
    (*progress->interrupt)();
  } catch (...) {
    progress->interrupted = std::current_exception();
  }
  if (progress->interrupted) keep_error(jpeg);
  if (jpeg->is_decompressor == FALSE) return;
  const auto* const reader = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (reader->input_scan_number <= kMostScans) return;
  auto* const errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  std::snprintf(errors->text.data(), errors->text.size(),
                "it has more than %d scans", kMostScans);
  std::longjmp(errors->back, 1);
}

}  // namespace

void set_jpeg_errors(JpegErrors& errors) {
  jpeg_std_error(&errors.base);
  errors.base.error_exit = keep_error;
  errors.base.emit_message = drop_message;
  errors.base.output_message = drop_output;
}

void set_jpeg_progress(j_common_ptr jpeg, JpegProgress& progress,
                       const Interruption& interrupt) {
  progress.base.progress_monitor = monitor;
  progress.interrupt = &interrupt;
  jpeg->progress = &progress.base;
}

}  // namespace tagflow::media
