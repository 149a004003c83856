// The faults of a schedule, which its seed determines.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tagflow::chaos {

inline constexpr uint32_t kWorkers = 3;
// The host after the workers' ones.
inline constexpr uint32_t kMaster = kWorkers;

enum class Kind : uint8_t {
  kKill,       // SIGKILL; another process follows at once
  kStop,       // SIGSTOP, and SIGCONT later
  kFullDisk,   // the process can write no further byte to any file
  kCut,        // nothing comes through, both ways
  kCutOneWay,  // nothing comes from the host to the other one
  kBadLine,    // packets are delayed, overtaken and lost, both ways
  kKillAhead,  // SIGKILL; the clock of the process that follows is ahead
  kDrain,      // SIGTERM to a worker; another one follows when it has left
  kAskDrain,   // the same by the command `tagflow cluster drain`
};

// When a fault comes, if the training has made its step: after a mark, and then
// after a time that is drawn. The first four of them begin with a kill or a
// drain, which is a fault of its own.
enum class Phase : uint8_t {
  kRegister,  // mark: the worker starts again
  kStart,     // mark: the command starts again
  kRestore,   // mark: the command says that it restarts
  kLeave,     // mark: a worker is drained
  kLoop,      // mark: a step begins. It is the loop's worker
  kDequeue,   // the same. It is the worker with a blocked dequeue
  kRecv,      // the same. It is the worker with an open Recv
  kWrite,     // mark: a file is made in the folder of checkpoints
  kPublish,   // mark: a file gets its own name there
  kEnd,       // mark: the last step has been made
};

struct Fault {
  Kind kind = Kind::kKill;
  Phase phase = Phase::kLoop;
  int64_t step = 1;
  uint32_t host = 0;
  uint32_t other = 0;  // at the other end of the line, if it has one
  std::chrono::microseconds delay{0};
  std::chrono::milliseconds lasts{0};  // 0: it is over at once
  int64_t ahead = 0;                   // seconds

  bool is_drain() const {
    return kind == Kind::kDrain || kind == Kind::kAskDrain;
  }
  // "worker stopped (task 1), 812 ms: loop after step 33 + 211 us".
  std::string to_string() const;
};

// "worker killed": a row of the tables.
std::string row_of(const Fault& fault);
// "register": a column.
std::string_view name_of(Phase phase);

// How many restarts the faults may cost at most; nothing if there is no such
// bound, as if a worker is lost.
std::optional<int> most_restarts(const std::vector<Fault>& faults);

// One to three faults, and those that begin their phases. The same ones for the
// same arguments.
struct Chances {
  bool has_network = false;    // else no lines are harmed
  bool is_clock_ours = false;  // whether processes may have their own clocks
  bool workers_write = false;  // files: then their disks may be full, too
};
std::vector<Fault> draw_faults(uint64_t seed, int64_t steps,
                               const Chances& chances);

}  // namespace tagflow::chaos
