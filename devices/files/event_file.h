// EventFile: what a program says of itself, which TensorBoard reads, even while
// the file grows: records of record_file.h, each of which is an Event.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "devices/files/files.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

// A file that is only ever appended to. Thread-compatible.
class EventFile {
 public:
  // A new file in the folder, which is made if it is missing:
  //   events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER<suffix>
  // No two files of a process have the same number.
  static Result<std::unique_ptr<EventFile>> create(FileSystem& files,
                                                   const std::string& folder,
                                                   const std::string& suffix);

  const std::string& path() const { return path_; }
  // Appends whole records. An error, as of a full disk, may leave a part of
  // them behind: `written` is how many bytes are in the file, and nothing can
  // be appended any more. Earlier records are intact: what reads the file takes
  // the part of a record at its end for one that is being written.
  // REQUIRES: no earlier call failed.
  Status append(std::string_view records, size_t& written);

 private:
  EventFile(std::string path, std::unique_ptr<WritableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
};

}  // namespace tagflow::checkpoint
