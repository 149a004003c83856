#include "apps/bench/process_figures.h"

#include <malloc.h>
#include <time.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "apps/shared/io/file.h"

namespace tagflow::apps {
namespace {

// The number after `key` in a status file of /proc.
Result<int64_t> number_of(const std::string& file, std::string_view key) {
  TAGFLOW_ASSIGN(const std::string text, io::read_file(file));
  std::istringstream lines(text);
  std::string word;
  while (lines >> word) {
    int64_t number = 0;
    if (word == key && lines >> number) return number;
  }
  return error(Code::kNotFound, "[bench] {} has no line \"{}\"", file, key);
}

Result<int64_t> kibibytes_of(std::string_view key) {
  TAGFLOW_ASSIGN(const int64_t number, number_of("/proc/self/status", key));
  return number * 1024;
}

}  // namespace

Result<int64_t> peak_resident_bytes() { return kibibytes_of("VmHWM:"); }
Result<int64_t> resident_bytes() { return kibibytes_of("VmRSS:"); }

Result<int64_t> thread_count() {
  return number_of("/proc/self/status", "Threads:");
}

Result<int64_t> context_switches() {
  namespace fs = std::filesystem;
  int64_t sum = 0;
  std::error_code failed;
  for (fs::directory_iterator thread("/proc/self/task", failed), end;
       !failed && thread != end; thread.increment(failed)) {
    const std::string file = thread->path() / "status";
    const auto voluntary = number_of(file, "voluntary_ctxt_switches:");
    const auto other = number_of(file, "nonvoluntary_ctxt_switches:");
    // A thread may have ended meanwhile.
    if (voluntary.ok() && other.ok()) sum += *voluntary + *other;
  }
  if (failed)
    return error(Code::kNotFound, "[bench] cannot list /proc/self/task: {}",
                 failed.message());
  return sum;
}

double cpu_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

int64_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return int64_t(info.uordblks) + int64_t(info.hblkhd);
}

void trim_heap() { malloc_trim(0); }

}  // namespace tagflow::apps
