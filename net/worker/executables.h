// Executables: what the master has registered at a worker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "net/worker/registration.h"

namespace tagflow::net {

// Each registration is followed by one release, which has its number and comes
// over another link: so it may come first, or while the registration is being
// compiled, which then ends. A number whose registration failed stays, too,
// until it is released. Thread-safe.
class Executables {
 public:
  static constexpr size_t kMost = 4096;

  // A registration is there. False if it has been released. ResourceExhausted
  // if kMost are there; AlreadyExists for a number that is there. After an
  // error end() is not called.
  Result<bool> begin(uint64_t number);
  // It is compiled, or has failed: then it is null. False if it was released
  // meanwhile. REQUIRES: begin() of it was true
  bool end(uint64_t number, std::shared_ptr<Registered> registered);
  // What was kept, or null. ResourceExhausted if 2 * kMost others are there:
  // their master released what it did not register.
  Result<std::shared_ptr<Registered>> release(uint64_t number);
  // Whether it was released before its end(), or the worker is closed.
  bool is_released(uint64_t number) const;
  // What is being compiled is for nobody any more.
  void close();
  // Null if it is not there.
  std::shared_ptr<Registered> find(uint64_t number) const;
  // How many are compiled.
  uint64_t count() const;
  void clear();

 private:
  enum class State : uint8_t { kBegun, kOver, kReleased };
  struct Entry {
    State state = State::kBegun;
    std::shared_ptr<Registered> registered;  // if it is over, and no failure
  };

  mutable std::mutex mutex_;  // guards the below
  std::map<uint64_t, Entry> entries_;
  bool is_closed_ = false;
};

}  // namespace tagflow::net
