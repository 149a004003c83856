// What random schedules of trainings have found, as a test of its own.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "actors/checkpoint/checkpoint_folder.h"
#include "tests/net/protocol/sim_disk.h"

using namespace tagflow;
using namespace tagflow::net;
using namespace tagflow::net::simulated;

namespace {

// A disk that may refuse new lists.
class ListlessFiles final : public DiskFiles {
 public:
  using DiskFiles::DiskFiles;
  bool has_lists = true;

  Result<std::unique_ptr<checkpoint::WritableFile>> create(
      const std::string& path) override {
    if (has_lists || path.find("/checkpoint") == path.npos)
      return DiskFiles::create(path);
    return error(Code::kResourceExhausted, "[disk] there is no room");
  }
};

// Of one machine, whose processes have one variable.
class Machine {
 public:
  explicit Machine(uint64_t seed)
      : world_(seed, 1, Planted::kNone),
        files_(world_, disk_, 1, Duration(0), [](Duration) {}) {}

  void refuse_lists() { files_.has_lists = false; }
  void lose_power() { disk_.lose_power(world_.random()); }

  std::unique_ptr<actors::CheckpointFolder> open() {
    auto folder = actors::CheckpointFolder::open(
        Disk::kFolder, "model.ckpt", /*keep=*/1,
        {&files_, /*sync=*/true, /*makes_folders=*/false});
    REQUIRE(folder.ok());
    return std::move(folder).value();
  }

  // Whether there was no error.
  bool saves(int64_t step) {
    actors::Checkpoint checkpoint;
    checkpoint.step = step;
    checkpoint.snapshot.variables["v"] = Tensor::scalar<int64_t>(step);
    const std::vector<std::string> names = {"v"};
    return open()->write(std::move(checkpoint), names, {}, nullptr).ok();
  }

  int64_t restored_step() {
    const std::vector<actors::GraphVariable> variables = {
        {.name = "v", .dtype = DataType::kInt64, .shape = PartialShape({})}};
    const auto loaded = open()->load(variables, {});
    REQUIRE(loaded.ok());
    return loaded->restored.step;
  }

 private:
  World world_;
  Disk disk_;
  ListlessFiles files_;
};

}  // namespace

// The list names a checkpoint that has gone, but not yet from the disk: when
// the power was lost after a restore of the newer one, the older one was back.
TEST_CASE(
    "smoke: a checkpoint that was found without its list stays the newest") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Machine machine(seed);
    CHECK(machine.saves(8));
    machine.refuse_lists();
    CHECK_FALSE(machine.saves(11));
    CHECK(machine.restored_step() == 11);
    machine.lose_power();
    CHECK(machine.restored_step() == 11);
  }
}
