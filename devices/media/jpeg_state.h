// What reading and writing JPEG share. Private to this folder's jpeg*.cpp.
#pragma once

#include <array>
#include <csetjmp>
#include <cstdio>
// After <cstdio>, whose types it needs.
#include <jpeglib.h>

#include <exception>
#include <string>

#include "devices/media/picture.h"

namespace tagflow::media {

// Errors of the library come back by longjmp: between run_jpeg()'s calls there
// must be no object with a destructor. The first members are those that the
// library gives back to its callbacks.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf back;
  std::array<char, JMSG_LENGTH_MAX> text{};
};

struct JpegProgress {
  jpeg_progress_mgr base;
  const Interruption* interrupt = nullptr;
  std::exception_ptr interrupted;  // what it has thrown
};

// Sets the callbacks: errors are kept, warnings and other words are dropped.
void set_jpeg_errors(JpegErrors& errors);
// Calls `interrupt` now and then. What it throws is kept, and is an error of
// the library. REQUIRES: an error manager of set_jpeg_errors()
void set_jpeg_progress(j_common_ptr jpeg, JpegProgress& progress,
                       const Interruption& interrupt);

// Calls the library, and returns false after an error of it. Throws what an
// interruption has thrown.
template <class F>
bool run_jpeg(JpegErrors& errors, JpegProgress& progress, const F& calls) {
  if (setjmp(errors.back) != 0) {
    if (progress.interrupted) std::rethrow_exception(progress.interrupted);
    return false;
  }
  calls();
  return true;
}

}  // namespace tagflow::media
