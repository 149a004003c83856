// Segment: the actor that runs the stages of a part of a pipeline.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "devices/cancellation.h"
#include "devices/kernels/dataset/stage.h"

namespace tagflow::devices {

class Pipeline;

// Makes the root of a segment, on a worker, when it is first needed.
using StartStages = std::function<Result<StagePtr>(Segment&)>;

// Life cycle: idle; scheduled, by wake(); running, on one worker; idle again,
// or scheduled again if it was woken meanwhile; stopped: it drops its stages
// when nobody is inside. Owned by shared pointers: its owner's, and that of the
// job that runs it. Thread-safe, but for what is said of the stages' side.
//
// Invariants:
//   1. At most one thread is inside of work().
//   2. A wake() is followed by a call of work(), unless the segment is stopped.
//   3. Stages are destroyed by the thread that is inside, or by the last owner.
class Segment : public std::enable_shared_from_this<Segment> {
 public:
  // Its root is at that depth.
  Segment(std::shared_ptr<Pipeline> pipeline, StartStages start, int depth = 0);
  virtual ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  void wake();
  void stop();

  Pipeline& pipeline() const { return *pipeline_; }

  // --- For stages, which are inside -----------------------------------------
  // A stage that may go through many elements in one call, as a filter, calls
  // this for each. If it is false, the stage returns that it waits: other work
  // gets its turn, and the segment is woken.
  bool take_turn();
  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // How deep the stage that is being made lies below the iterator. next() calls
  // go as deep, so there is a limit.
  int depth() const { return depth_; }
  // As long as this lives, stages are made at that depth.
  class Depth {
   public:
    Depth(Segment& segment, int depth)
        : segment_(segment), before_(std::exchange(segment.depth_, depth)) {}
    ~Depth() { segment_.depth_ = before_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Segment& segment_;
    const int before_;
  };

 protected:
  // Works until it has to wait, or has nothing to do. Called inside.
  virtual void work() = 0;
  // work() has thrown: whoever waits gets this error. Called inside.
  virtual void fail(const Status& thrown) noexcept = 0;
  // The root's next answer; after the end it is not asked again.
  Progress pull(Pull& pull);

 private:
  enum State : int { kIdle, kScheduled, kRunning, kWoken };
  static constexpr int kTurns = 1024;

  void run() noexcept;
  // False if there is no memory for it.
  bool post() noexcept;
  void drop_stages();

  const std::shared_ptr<Pipeline> pipeline_;
  StartStages start_;
  StagePtr root_;
  bool is_over_ = false;  // the root has said so
  int turns_ = 0;
  int depth_ = 0;
  std::atomic<int> state_{kIdle};
  std::atomic<bool> stopped_{false};
};

// One who waits for an element of a pipeline. answer() is called once, unless
// the hook is cancelled before.
class ElementRequest : public CancelHook {
 public:
  // Takes the answer: false if nobody receives it, and `pull` is as it was.
  // REQUIRES: the caller has claimed the hook.
  virtual bool answer(Progress progress, Pull& pull) = 0;
  // The pipeline ended before there was an answer. REQUIRES: as for answer().
  virtual void refuse(const Status& reason) = 0;
};

// The segment of an iterator: it has as many elements as are asked for, one by
// one, in the order of the requests.
class RootSegment final : public Segment {
 public:
  using Segment::Segment;

  void ask(std::shared_ptr<ElementRequest> request);
  // Stops, and refuses all requests, present and later ones.
  void end(const Status& reason) noexcept;
  // How many answers, elements and errors, it has given.
  int64_t position() const { return position_.load(std::memory_order_relaxed); }
  // Makes the first `count` answers, and gives them to nobody: its position is
  // behind them at once. REQUIRES: nobody has asked yet.
  void skip(int64_t count) {
    to_skip_ = count;
    position_.store(count, std::memory_order_relaxed);
  }

 protected:
  void work() override;
  void fail(const Status& thrown) noexcept override { end(thrown); }

 private:
  // Removes requests that were cancelled; false if none is left.
  bool is_wanted();
  // The first request that can be claimed, or null.
  std::shared_ptr<ElementRequest> take_request();

  std::atomic<int64_t> position_{0};
  int64_t to_skip_ = 0;
  // What the stages gave when nobody wanted it any more.
  std::optional<Progress> kept_progress_;
  Pull kept_;
  std::mutex mutex_;  // guards the below
  std::deque<std::shared_ptr<ElementRequest>> requests_;
  Status ended_;
};

// Works ahead of the stage that takes its elements, which is in another
// segment.
class AheadSegment final : public Segment {
 public:
  // At least one element is kept ready. `consumer` is woken when there is
  // something after it has found nothing.
  AheadSegment(std::shared_ptr<Pipeline> pipeline, StartStages start,
               size_t capacity, Segment& consumer);

  // Called by the consumer. kWait: the consumer will be woken.
  Progress take(Pull& pull);

 protected:
  void work() override;
  // It has ended, with that error.
  void fail(const Status& thrown) noexcept override;

 private:
  struct Answer {
    Progress progress;
    Pull pull;
  };
  bool is_full();
  void put(Answer answer);

  const size_t capacity_;
  const std::weak_ptr<Segment> consumer_;
  std::mutex mutex_;  // guards the below
  std::deque<Answer> ready_;
  bool is_consumer_waiting_ = false;
  bool has_ended_ = false;
  Status failed_;  // the last answer
};

// A stage that takes the elements of a segment of its own.
class AheadStage final : public Stage {
 public:
  // `consumer` is the segment of this stage. The work begins at once.
  AheadStage(Segment& consumer, StartStages start, size_t capacity);
  ~AheadStage() override;

  Progress next(Pull& pull) override { return ahead_->take(pull); }

 private:
  const std::shared_ptr<AheadSegment> ahead_;
};

}  // namespace tagflow::devices
