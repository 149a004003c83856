#include "graph/unfinished_file.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tagflow {

// Whoever takes the path out of a note owns it, so that a signal handler and
// the thread that it interrupts never use it together.
struct UnfinishedFile::Note {
  std::atomic<char*> path{nullptr};  // null: free
  std::atomic<bool> is_used{false};
  Note* next = nullptr;    // constant once it is in the list
  char* doomed = nullptr;  // of the signal handler
};

namespace {

// Notes are added at the front, and stay.
std::atomic<void*> first_note{nullptr};
std::atomic<int> num_making{0};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<void*>::is_always_lock_free);
static_assert(std::atomic<char*>::is_always_lock_free);

}  // namespace

UnfinishedFile::Note* UnfinishedFile::claim_note() noexcept {
  for (auto* note = static_cast<Note*>(first_note.load()); note != nullptr;
       note = note->next)
    if (!note->is_used.exchange(true)) return note;
  auto* const note = new (std::nothrow) Note;
  if (note == nullptr) return nullptr;
  note->is_used = true;
  void* first = first_note.load();
  do {
    note->next = static_cast<Note*>(first);
  } while (!first_note.compare_exchange_weak(first, note));
  return note;
}

UnfinishedFile::UnfinishedFile(std::string_view path) noexcept {
  auto* const copy = static_cast<char*>(std::malloc(path.size() + 1));
  if (copy == nullptr) return;
  std::memcpy(copy, path.data(), path.size());
  copy[path.size()] = '\0';
  note_ = claim_note();
  if (note_ == nullptr)
    std::free(copy);
  else
    note_->path = copy;
}

UnfinishedFile::~UnfinishedFile() {
  if (note_ == nullptr) return;
  std::free(note_->path.exchange(nullptr));
  note_->is_used = false;
}

MakingUnfinishedFile::MakingUnfinishedFile() noexcept {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigdelset(&signals, fault);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  num_making.fetch_add(1);
}

MakingUnfinishedFile::~MakingUnfinishedFile() {
  num_making.fetch_sub(1);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void remove_unfinished_files() noexcept {
  constexpr int kMostWaits = 1000;
  constexpr timespec kMillisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int i = 0; i < kMostWaits && num_making.load() > 0; ++i)
    nanosleep(&kMillisecond, nullptr);
  using Note = UnfinishedFile::Note;
  auto* const first = static_cast<Note*>(first_note.load());
  for (Note* note = first; note != nullptr; note = note->next) {
    note->doomed = note->path.exchange(nullptr);
    if (note->doomed != nullptr && unlink(note->doomed) == 0)
      note->doomed = nullptr;
  }
  // Folders are in no order: those in others are removed first.
  for (bool is_removed = true; is_removed;) {
    is_removed = false;
    for (Note* note = first; note != nullptr; note = note->next) {
      if (note->doomed == nullptr || rmdir(note->doomed) != 0) continue;
      note->doomed = nullptr;
      is_removed = true;
    }
  }
}

}  // namespace tagflow
