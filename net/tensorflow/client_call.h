// ClientSession::Call: a run that a client waits for. Internal to its session.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "actors/runtime/engine.h"
#include "actors/watch/trace.h"
#include "net/proto/master.pb.h"
#include "net/tensorflow/client_session.h"
#include "net/tensorflow/step_stats.h"

namespace tagflow::net {

// The names of a run.
struct ClientSession::Signature {
  std::vector<std::string> feeds, fetches, targets;

  // Unique: names are written with their lengths.
  std::string key() const;
};

// What runs of a signature need. Thread-safe.
struct ClientSession::Prepared {
  std::unique_ptr<actors::Session> own;  // null: the callable is the session's
  actors::Callable callable;
  std::vector<std::string> fetches;
  ByteCount::Share graph_copy;             // of `own`
  mutable tensorflow::RunOptions options;  // of a callable; set once
  mutable std::atomic<uint64_t> runs{0};

  // Whether the next run is to be started by a clerk, who may compile a form of
  // the signature: Note [Forms].
  bool is_due_for_a_look() const {
    constexpr uint64_t kRunsPerLook = 16;
    return runs.fetch_add(1, std::memory_order_relaxed) % kRunsPerLook ==
           kRunsPerLook - 1;
  }
};

// It counts, as its feeds' bytes do, until it is destroyed. Its client is
// answered once. Used by one thread at a time.
class ClientSession::Call : public std::enable_shared_from_this<Call> {
 public:
  // ResourceExhausted if there are too many. `done` may be empty.
  static Result<std::shared_ptr<Call>> begin(
      std::shared_ptr<ClientSession> session, ByteCount::Share bytes,
      const actors::CancelToken& token, const Done& done);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // For the run itself.
  actors::RunOptions run_options() const;
  // Has the run recorded, if its options want that.
  Status record();
  // Starts the run with its feeds, and answers when it is over.
  void start(ReadyToRun prepared);
  // Writes the fetches of these names, or says why there are none.
  void answer(const std::vector<std::string>& fetches,
              Result<std::vector<Tensor>> result);
  // Answers, for the first time. An error gets the form for clients.
  void finish(const Status& status);
  // Of the response.
  tensorflow::RunMetadata* metadata();

  const actors::CancelToken token;
  tensorflow::RunOptions options;
  std::vector<Tensor> feeds;
  // One of the two: where the answer goes.
  tensorflow::RunStepResponse* step = nullptr;
  tensorflow::RunCallableResponse* callable = nullptr;

 private:
  Call(std::shared_ptr<ClientSession> session, ByteCount::Share bytes,
       const actors::CancelToken& run_token, const Done& done);
  void write_handles(const Tensor& handles,
                     tensorflow::TensorProto* proto) const;
  Status write(const std::vector<std::string>& fetches,
               const std::vector<Tensor>& values);

  const std::shared_ptr<ClientSession> session_;
  const ByteCount::Share bytes_;
  Done done_;
  ReadyToRun prepared_;
  std::shared_ptr<actors::Trace> trace_;
  std::chrono::system_clock::time_point began_;  // of the trace
};

}  // namespace tagflow::net
