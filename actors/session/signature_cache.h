// SignatureCache: the compiled signatures of a session, those used last.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/session/executable.h"
#include "graph/graph.h"

namespace tagflow::actors {

// A signature, as it is looked up.
struct Signature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

class Forms;

// A compiled signature, with what its feeds must look like.
struct Prepared {
  std::vector<graph::Endpoint> feeds;
  std::shared_ptr<Executable> executable;
  bool updates_state = false;  // Note [Borders] in shared_state.h
  // Null where every run has the same: Note [Forms].
  std::shared_ptr<Forms> forms;
};

// Holds its mutex only to look up, never while something compiles: runs that
// are prepared wait for nobody. Thread-safe.
class SignatureCache {
 public:
  // REQUIRES: most > 0
  explicit SignatureCache(size_t most) : most_(most) {}

  // Null where it is not there.
  std::shared_ptr<const Prepared> find(const std::string& key);
  // Drops those used longest ago beyond the most that are kept; who runs them
  // or holds a Callable keeps them.
  void add(const std::string& key, std::shared_ptr<const Prepared> prepared);
  void clear();
  size_t size() const;

  // Unambiguous for any names.
  static std::string key(const Signature& signature);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Prepared> prepared;
  };
  using Entries = std::list<Entry>;  // the last used first

  const size_t most_;
  mutable std::mutex mutex_;  // guards the below
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> by_key_;
};

}  // namespace tagflow::actors
