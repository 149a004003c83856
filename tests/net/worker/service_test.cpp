#include "net/worker/service.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "net/transfer/identity.h"
#include "tests/net/local_worker.h"

namespace tagflow::net {

namespace {

// A master that is nothing but its links to one worker.
class BareMaster {
 public:
  // `answer` is the kind of the frame that it waits for.
  BareMaster(const WorkerOptions& options, uint16_t port, FrameKind answer)
      : threads_(std::move(*IoThreads::start())) {
    const Identity identity = *make_identity(Role::kMaster, {"master", 0},
                                             options.cluster, options.secret);
    auto pair = connect_pair(*threads_.bulk, {"localhost", port}, identity, 0);
    REQUIRE(pair.ok());
    links_.emplace(threads_, std::move(pair->small), std::move(pair->bulk),
                   "the worker");
    links_->start({.on_frame =
                       [this, answer](const Frame& frame) {
                         if (frame.kind == answer)
                           tell(std::string(frame.body));
                         return Status();
                       },
                   .on_lost = [this](const Status& status) { tell(status); }});
  }

  // The first answer. Called once.
  template <class Message>
  Result<Message> wait() {
    TAGFLOW_ASSIGN(const std::string body, promise_.get_future().get());
    return parse_body<Message>(body);
  }
  Channel& links() { return *links_; }
  void send(const Register& registration) {
    const auto bytes =
        std::make_shared<const std::string>(*bytes_of(registration));
    const Begin begin{
        links_->next_object(), ObjectKind::kRegister, bytes->size(), {}};
    links_->send(BulkLink::Object{begin, *bytes, bytes});
  }

 private:
  void tell(Result<std::string> answer) {
    if (is_first_.exchange(false)) promise_.set_value(std::move(answer));
  }

  std::promise<Result<std::string>> promise_;
  std::atomic<bool> is_first_{true};
  IoThreads threads_;
  std::optional<Channel> links_;
};

}  // namespace

TEST_CASE("a step above the limit of a worker is refused without its link") {
  constexpr uint64_t kMost = 4096;
  const WorkerOptions options = local_worker(0);
  const auto worker = std::move(*Worker::start(options));
  BareMaster master(options, worker->port(), FrameKind::kDone);
  // They wait for feeds that do not come.
  for (uint64_t step = 1; step <= kMost; ++step)
    REQUIRE(master.links()
                .send(Run{.step = step, .feeds = {{0, ObjectId(step)}}})
                .ok());
  REQUIRE(master.links()
              .send(Run{.step = kMost + 1, .feeds = {{0, ObjectId(kMost + 1)}}})
              .ok());
  const auto done = master.wait<Done>();
  REQUIRE(done.ok());
  CHECK(done->step == kMost + 1);
  CHECK(done->outcome.message == "[net] a worker runs 4096 steps at a time");
  CHECK(master.links().lost().ok());
}

TEST_CASE(
    "a registration that is too long for a worker ends the master's link") {
  const WorkerOptions options = local_worker(0);
  const auto worker = std::move(*Worker::start(options));
  BareMaster master(options, worker->port(), FrameKind::kReply);
  const size_t size = RegisterInputs::kMostBytes + 1;
  // Its pages take no memory.
  void* const zeros =
      ::mmap(nullptr, size, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(zeros != MAP_FAILED);
  const std::shared_ptr<const void> owner(
      zeros, [](void* pages) { ::munmap(pages, size); });
  master.links().send(BulkLink::Object{
      {master.links().next_object(), ObjectKind::kRegister, size, {}},
      {static_cast<const char*>(zeros), size},
      owner});
  const Status lost = master.wait<Reply>().status();
  CAPTURE(lost.to_string());
  CHECK(lost.message().find("2147483649 more are above the limit") !=
        std::string::npos);
}

TEST_CASE("workers that have gone keep no other one from connecting") {
  constexpr int kMost = 1024;
  const WorkerOptions options = local_worker(0);
  const auto worker = std::move(*Worker::start(options));
  const IoThreads threads = std::move(*IoThreads::start());
  // As a worker that is started anew again and again.
  for (int i = 0; i < kMost + 8; ++i) {
    CAPTURE(i);
    const Identity identity = *make_identity(Role::kWorker, {"worker", 1},
                                             options.cluster, options.secret);
    const auto pair =
        connect_pair(*threads.bulk, {"localhost", worker->port()}, identity, 0);
    REQUIRE_MESSAGE(pair.ok(), pair.status().to_string());
  }
}

TEST_CASE("a master that sends Resets without end is lost") {
  WorkerOptions options = local_worker(1);
  std::promise<std::string> why;
  std::atomic<bool> is_told{false};
  options.on_event = [&](const Event& event) {
    if (event.kind != Event::Kind::kWarning) return;
    if (!is_told.exchange(true)) why.set_value(event.text);
  };
  const auto worker = std::move(*Worker::start(options));
  {
    BareMaster master(options, worker->port(), FrameKind::kReply);
    // A registration waits for its peer, and Resets wait for it, once it is
    // there: the two come by different links.
    uint64_t number = 0;
    while (master.links().lost().ok()) {
      master.send({.executable = ++number,
                   .parts = {{"nothing", "nothing"}},
                   .peers = {{{"worker", 0}, 1, "localhost", 1}}});
      for (int i = 0; i < 1000 && master.links().lost().ok(); ++i) {
        REQUIRE(master.links().send(Reset{.request = ++number}).ok());
        if (i % 100 == 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
  CHECK(why.get_future().get().find("256 Resets wait, the limit") !=
        std::string::npos);
}

TEST_CASE(
    "a released registration does not wait for a peer that is not there") {
  const WorkerOptions options = local_worker(1);
  const auto worker = std::move(*Worker::start(options));
  BareMaster master(options, worker->port(), FrameKind::kReply);
  Register registration{.executable = 1,
                        .parts = {{"nothing", "nothing"}},
                        .peers = {{{"worker", 0}, 1, "localhost", 1}}};
  master.send(registration);
  REQUIRE(master.links().send(Release{1}).ok());
  registration.executable = 2;
  registration.peers.clear();
  master.send(registration);
  // Otherwise the first answer is that the peer of the first did not connect.
  const auto reply = master.wait<Reply>();
  REQUIRE(reply.ok());
  CHECK(reply->request == 2);
  CHECK(reply->outcome.code == Code::kNotFound);
}

}  // namespace tagflow::net
