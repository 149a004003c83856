// Workers of this process that join each other.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "net/control/client.h"
#include "net/worker/worker.h"
#include "tests/net/link/loopback.h"
#include "tests/net/local_worker.h"

namespace tagflow::net {

// What a worker says. Thread-safe.
class Warnings {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(text);
  }
  bool mention(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    for (const std::string& text : texts_)
      if (text.find(part) != text.npos) return true;
    return false;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

struct Joined {
  std::shared_ptr<Warnings> warnings = std::make_shared<Warnings>();
  std::unique_ptr<Worker> worker;

  Address address() const { return {"localhost", worker->port()}; }
};

inline WorkerOptions joining(uint32_t task, Address join = {}) {
  WorkerOptions options = local_worker(task);
  options.devices = "cpu:1:memory=64MiB";
  options.join = std::move(join);
  return options;
}

inline Joined start_worker(WorkerOptions options) {
  Joined joined;
  options.on_event = [warnings = joined.warnings](const Event& event) {
    if (event.kind == Event::Kind::kWarning) warnings->add(event.text);
  };
  auto worker = Worker::start(std::move(options));
  INFO(worker.status().to_string());
  REQUIRE(worker.ok());
  joined.worker = std::move(*worker);
  return joined;
}

inline ClusterAccess access_by(Address address) {
  return {std::move(address), kTestCluster, kTestSecret};
}

// Waits until it is so, or fails.
template <class F>
void wait_until(F is_so) {
  const auto end = std::chrono::steady_clock::now() + kNever;
  while (!is_so()) REQUIRE(std::chrono::steady_clock::now() < end);
}

// The members when there are so many.
inline std::vector<CatalogueEntry> wait_for_members(const Address& any,
                                                    size_t count) {
  std::vector<CatalogueEntry> members;
  wait_until([&] {
    // A member that has not joined yet knows the way.
    auto found = members_of(access_by(any));
    if (found.ok()) members = std::move(*found);
    return found.ok() && members.size() == count;
  });
  return members;
}

}  // namespace tagflow::net
