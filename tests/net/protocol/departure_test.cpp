#include "net/protocol/departure.h"

#include <doctest/doctest.h>

namespace tagflow::net {
namespace {

constexpr auto kIsNeeded = [](int member) { return member == 1; };

}  // namespace

TEST_CASE("smoke: a worker is free to leave when its master agrees") {
  Departure departure;
  CHECK_FALSE(departure.has_begun());
  CHECK(departure.begin(true));
  CHECK(departure.has_begun());
  CHECK_FALSE(departure.is_free());
  REQUIRE(departure.on_agreed().ok());
  CHECK(departure.is_free());
}

TEST_CASE("smoke: a worker without a master is free to leave at once") {
  Departure departure;
  CHECK_FALSE(departure.begin(false));
  CHECK(departure.is_free());
}

TEST_CASE("smoke: a master is asked once to let a worker go") {
  Departure departure;
  CHECK(departure.begin(true));
  CHECK_FALSE(departure.begin(true));
}

TEST_CASE("smoke: a master that lets a worker go unasked ends its link") {
  Departure departure;
  CHECK(departure.on_agreed().code() == Code::kDataLoss);
  CHECK_FALSE(departure.has_begun());
  departure.begin(true);
  REQUIRE(departure.on_agreed().ok());
  CHECK(departure.on_agreed().code() == Code::kDataLoss);
}

TEST_CASE("smoke: a master lets those go that no step needs, each once") {
  Departures<int> departures;
  departures.add(1);
  departures.add(2);
  departures.add(2);
  CHECK(departures.take(kIsNeeded) == std::vector<int>{2});
  CHECK(departures.take(kIsNeeded).empty());
  CHECK_FALSE(departures.empty());
  CHECK(departures.take([](int) { return false; }) == std::vector<int>{1});
  CHECK(departures.empty());
}

TEST_CASE("smoke: a master answers no worker that it has lost") {
  Departures<int> departures;
  departures.add(1);
  departures.remove(1);
  CHECK(departures.take([](int) { return false; }).empty());
}

}  // namespace tagflow::net
