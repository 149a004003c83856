// Mailbox: any thread puts numbers into it, and runs wait for them.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <mutex>

#include "devices/kernel.h"

// Thread-safe.
class Mailbox {
 public:
  static Mailbox& global();

  // Passes the value to the oldest wait, or keeps it if there is none.
  void put(double value);
  // The number of values, and the number of waits.
  size_t size() const;
  size_t waiting() const;

  // A node that waits for a value. Exactly one of complete() and on_cancel()
  // answers it.
  class Wait : public tagflow::devices::CancelHook,
               public std::enable_shared_from_this<Wait> {
   public:
    // REQUIRES: the context is there until `done` is called.
    Wait(Mailbox& mailbox, tagflow::devices::KernelContext& context,
         tagflow::devices::Completion done);

    // False if the run has ended: then the caller keeps the value.
    bool complete(double value);
    // Answers it. REQUIRES: nobody else answers it.
    void end(tagflow::Status status);

   protected:
    void on_cancel() override;

   private:
    friend class Mailbox;
    Mailbox& mailbox_;
    tagflow::devices::KernelContext& context_;
    tagflow::devices::Completion done_;
    // Guarded by the mailbox's mutex.
    bool is_over_ = false;  // cancelled before it was in the queue, or in it
    bool is_queued_ = false;
    std::list<std::shared_ptr<Wait>>::iterator place_;
  };

  // Completes the wait with the oldest value, or keeps it until there is one.
  void take(const std::shared_ptr<Wait>& wait);

 private:
  enum class End { kFront, kBack };
  // put(), and where to keep the value.
  void hand_over(double value, End end);

  mutable std::mutex mutex_;  // guards the below; held briefly
  std::deque<double> values_;
  std::list<std::shared_ptr<Wait>> waits_;
};
