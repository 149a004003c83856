// The table of state that outlives steps: homes.
#include "devices/state/resource_manager.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace tagflow;
using namespace tagflow::devices;

namespace {

using HomeRequest = ResourceManager::HomeRequest;

ResourceKey variable(std::string name) {
  return {"", "variable", std::move(name)};
}

}  // namespace

TEST_CASE("homes are claimed all together or not at all") {
  ResourceManager manager;
  const ResourceKey a = variable("a"), b = variable("b"), c = variable("c");
  const auto claim = [&](std::vector<HomeRequest> claims) {
    return manager.request_homes(claims);
  };
  CHECK(claim({{a, "cpu", {}}, {b, "stream", {}}}));
  const ResourceManager::Homes homes{{a, "cpu"}, {b, "stream"}};
  CHECK(manager.homes() == homes);
  CHECK_FALSE(claim({{c, "cpu", {}}, {a, "stream", {}}}));
  CHECK(manager.homes() == homes);
  // What is tied is looked at, but gets no home by it.
  CHECK_FALSE(claim({{c, "cpu", {&b, 1}}}));
  CHECK(manager.homes() == homes);
  const ResourceKey other = variable("other");
  CHECK(claim({{c, "cpu", {&other, 1}}, {a, "cpu", {}}}));
  CHECK(manager.homes().size() == 3);
  CHECK(manager.homes().at(c) == "cpu");
  CHECK(manager.size() == 0);
  // Beyond a reset.
  manager.reset(std::vector<std::string>{""});
  CHECK(manager.homes().size() == 3);
}

TEST_CASE("threads that claim the homes of one group never split it") {
  constexpr int kRounds = 500;
  ResourceManager manager;
  const auto keys = [](int round) {
    return std::vector{variable(fmt::format("{}a", round)),
                       variable(fmt::format("{}b", round))};
  };
  std::vector<std::thread> threads;
  for (const size_t mine : {0, 1})
    threads.emplace_back([&, mine] {
      for (int round = 0; round < kRounds; ++round) {
        const std::vector<ResourceKey> group = keys(round);
        const HomeRequest first{group[mine], fmt::format("device {}", mine),
                                group};
        if (manager.request_homes({&first, 1})) continue;
        const HomeRequest then{group[mine], fmt::format("device {}", 1 - mine),
                               group};
        REQUIRE(manager.request_homes({&then, 1}));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const ResourceManager::Homes homes = manager.homes();
  CHECK(homes.size() == 2 * kRounds);
  for (int round = 0; round < kRounds; ++round)
    CHECK(homes.at(keys(round)[0]) == homes.at(keys(round)[1]));
}
