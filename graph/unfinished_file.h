// Files that a process removes if a signal ends it.
#pragma once

#include <signal.h>

#include <string_view>

namespace tagflow {

// Notes that a file or folder has a temporary name until it is whole, so that
// it is of no use to anybody if the process ends before. A program that handles
// signals removes those that are noted by remove_unfinished_files(); other
// programs that use the library are not affected.
//
// Life cycle: made before the file is, and destroyed after the file got its
// name or was removed. If memory is short, nothing is noted. A note may be made
// and destroyed by any thread.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string_view path) noexcept;
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile();

 private:
  struct Note;
  friend void remove_unfinished_files() noexcept;
  static Note* claim_note() noexcept;

  Note* note_ = nullptr;  // never freed, but used again
};

// Exists while its thread makes a file and notes it. Without it, a signal that
// comes in between would leave the file: so this thread handles no signals
// meanwhile, and remove_unfinished_files() of another one waits, for a second
// at most.
class MakingUnfinishedFile {
 public:
  MakingUnfinishedFile() noexcept;
  MakingUnfinishedFile(const MakingUnfinishedFile&) = delete;
  MakingUnfinishedFile& operator=(const MakingUnfinishedFile&) = delete;
  ~MakingUnfinishedFile();

 private:
  sigset_t before_;
};

// Removes the files that are noted, and then the folders, if they are empty. It
// may be called by a signal handler. The process should end soon after, since
// the writers do not know of it.
void remove_unfinished_files() noexcept;

}  // namespace tagflow
