#include "devices/rendezvous.h"

#include <mutex>
#include <unordered_map>

namespace tagflow::devices {

std::string TransferKey::to_string() const {
  return fmt::format("{};{:016x}{:016x}:{}", edge, tag.frame_hi, tag.frame_lo,
                     tag.iteration);
}

namespace {

class LocalRendezvous : public Rendezvous {
 public:
  Status send(const TransferKey& key, Transfer transfer) override {
    std::string name = key.to_string();
    Receiver receiver;
    {
      std::lock_guard lock(mutex_);
      auto [it, is_new] = table_.try_emplace(name);
      Entry& entry = it->second;
      if (is_new) {
        entry.transfer = std::move(transfer);
        return {};
      }
      if (!entry.receiver)
        return error(Code::kAlreadyExists, "[rendezvous] {} was sent twice",
                     name);
      receiver = std::move(entry.receiver);
      table_.erase(it);
    }
    receiver(std::move(transfer));
    return {};
  }

  void receive(const TransferKey& key, Receiver receiver) override {
    std::string name = key.to_string();
    Transfer transfer;
    {
      std::lock_guard lock(mutex_);
      auto [it, is_new] = table_.try_emplace(name);
      Entry& entry = it->second;
      if (is_new) {
        entry.receiver = std::move(receiver);
        return;
      }
      if (!entry.receiver) {
        transfer = std::move(entry.transfer);
        table_.erase(it);
      } else {
        name.insert(0, "[rendezvous] two receives of ");
      }
    }
    if (name.starts_with("[rendezvous]")) {
      receiver(Status(Code::kAlreadyExists, std::move(name)));
    } else {
      receiver(std::move(transfer));
    }
  }

  std::vector<std::string> waiting() const override {
    std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, entry] : table_)
      if (entry.receiver) names.push_back(name);
    return names;
  }

  void clear() override {
    std::unordered_map<std::string, Entry> dropped;
    std::lock_guard lock(mutex_);
    dropped.swap(table_);
  }

 private:
  struct Entry {
    Transfer transfer;
    Receiver receiver;  // set: the receive came first
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> table_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_local_rendezvous() {
  return std::make_unique<LocalRendezvous>();
}

}  // namespace tagflow::devices
