// SignatureCache: the most recently used compiled signatures of a session.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/session/executable.h"
#include "graph/node.h"

namespace tagflow::actors {

// A signature: the key of a lookup.
struct Signature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

class Forms;

// A compiled signature, with its feeds.
struct Prepared {
  std::vector<graph::Endpoint> feeds;
  std::shared_ptr<Executable> executable;
  // Note [Borders] in shared_state.h.
  bool updates_state = false;
  bool moves_elements = false;
  // Null if all runs use the same form: Note [Forms].
  std::shared_ptr<Forms> forms;
};

// Holds its mutex only during a lookup, never during a compilation, so that
// prepared runs do not wait. Thread-safe.
class SignatureCache {
 public:
  // REQUIRES: most > 0
  explicit SignatureCache(size_t most) : most_(most) {}

  // Null if it is not cached, or can never run again: then it is dropped.
  std::shared_ptr<const Prepared> find(const std::string& key);
  // Drops the least recently used ones beyond the limit. Their runs and
  // Callables keep them alive.
  void add(const std::string& key, std::shared_ptr<const Prepared> prepared);
  void clear();
  size_t size() const;

  // A unique key of the signature, for arbitrary names.
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
