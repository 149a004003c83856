#include "actors/plan/lossy_transfers.h"

#include <doctest/doctest.h>

#include <mutex>

#include "graph/builder/builder.h"
#include "tests/actors/engine_check.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;  // NOLINT: the builder's vocabulary
using graph::testing::must;

namespace {

// A session and what it warned of.
struct Warned {
  std::unique_ptr<Session> session;
  std::shared_ptr<std::vector<std::string>> warnings =
      std::make_shared<std::vector<std::string>>();
};

Warned session_over(const Graph& graph, const std::string& devices,
                    std::vector<std::string> lossy) {
  Warned made;
  SessionOptions options;
  options.devices = devices;
  options.passes = PassSet::none();
  options.lossy = std::move(lossy);
  options.on_warning = [said = made.warnings](const std::string& text) {
    said->push_back(text);
  };
  made.session = make_session(options, graph);
  return made;
}

// x:0, a float[2], passes "here" on one device and "there" on another.
struct Crossing {
  explicit Crossing(const std::string& device_of_there) {
    const Scope s(graph);
    const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {2});
    const Scope first = s.with_device("/cpu:0");
    const Output here = ops::identity(first.named("here"), x);
    const Scope second = s.with_device(device_of_there);
    const Output there = ops::mul(second.named("there"), here, 1.0f);
    const Output count = ops::cast(first.named("count"), x, DataType::kInt32);
    ops::add(second.named("more"), count, 1);
    ops::identity(first.named("back"), there);
    must(s.status());
  }
  Tensor run(Warned& warned, const std::string& fetch) const {
    return must_run(*warned.session, {{"x", feed}}, {fetch})[0];
  }

  Graph graph;
  const Tensor feed = Tensor::vector<float>({1.00390625f, 3.1415927f});
  // The upper 16 bits of each.
  const Tensor cut = Tensor::vector<float>({1.0f, 3.140625f});
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("lossy transfers: only tensors sent in 16 bits lose digits") {
  const Crossing crossing("/cpu:1");
  Warned exact = session_over(crossing.graph, "cpu:2", {});
  CHECK(identical(crossing.run(exact, "there:0"), crossing.feed));
  for (const char* name : {"*", "here:0", "here"}) {
    Warned lossy = session_over(crossing.graph, "cpu:2", {name});
    CHECK(identical(crossing.run(lossy, "there:0"), crossing.cut));
    CHECK(crossing.run(lossy, "more:0").flat<int32_t>()[1] == 4);
    CHECK(identical(crossing.run(lossy, "here:0"), crossing.feed));
  }
}

TEST_CASE("lossy transfers: a fetched tensor keeps its digits unless named") {
  const Crossing crossing("/device:STREAM:0");
  const auto fetched = [&](Texts lossy) {
    Warned warned = session_over(crossing.graph, "stream:1", std::move(lossy));
    // Fed where it is read, so that what comes back is all that crosses.
    const Tensor out =
        must_run(*warned.session, {{"here", crossing.feed}}, {"there:0"})[0];
    return std::pair(out, *warned.warnings);
  };
  const auto [named, nothing] = fetched({"there:0"});
  CHECK(identical(named, crossing.cut));
  CHECK(nothing.empty());

  Graph graph;
  const Scope s(graph);
  const Output zeros = ops::constant(
      s.with_device("/device:STREAM:0").named("zeros"), Tensor::scalar(0.0f));
  const Output made = ops::add(s.with_device("/device:STREAM:0").named("made"),
                               zeros, 3.1415927f);
  must(s.status());
  Warned all = session_over(graph, "stream:1", {"*"});
  const auto out = must_run(*all.session, {}, {made.name()});
  CHECK(out[0].scalar_value<float>() == 3.1415927f);
  CHECK(*all.warnings ==
        Texts{"[lossy] \"*\" matches no transfer: all sent tensors are "
              "fetched: \"made:0\""});
}

TEST_CASE("lossy transfers: a name that matches none causes a warning") {
  const Crossing crossing("/cpu:1");
  Warned warned =
      session_over(crossing.graph, "cpu:2", {"there:0", "count:0", "here:0"});
  crossing.run(warned, "there:0");
  CHECK(*warned.warnings ==
        Texts{"[lossy] \"there:0\" matches no transfer: the sent float "
              "tensors are \"here:0\"",
              "[lossy] \"count:0\" matches no transfer: the sent float "
              "tensors are \"here:0\""});
  for (const char* name : {"*", "here:0"}) {
    Warned alone = session_over(crossing.graph, "cpu:1,stream:1", {name});
    crossing.run(alone, "here:0");
    CHECK(*alone.warnings ==
          Texts{fmt::format("[lossy] \"{}\" matches no transfer: no float "
                            "tensor is sent between devices",
                            name)});
  }

  Graph many;
  const Scope s(many);
  Outputs sums;
  for (int i = 0; i < 7; ++i) {
    const Output x =
        ops::placeholder(s.named(fmt::format("x{}", i)), DataType::kFloat, {});
    const Output y = ops::neg(s.with_device("/cpu:0"), x);
    sums.push_back(
        ops::identity(s.with_device("/cpu:1").named(fmt::format("y{}", i)), y));
  }
  must(s.status());
  Warned long_list = session_over(many, "cpu:2", {"x0"});
  std::vector<Feed> feeds;
  Texts fetches;
  for (int i = 0; i < 7; ++i) {
    feeds.emplace_back(fmt::format("x{}", i), Tensor::scalar(1.0f));
    fetches.push_back(sums[size_t(i)].name());
  }
  must_run(*long_list.session, feeds, fetches);
  REQUIRE(long_list.warnings->size() == 1);
  CHECK(long_list.warnings->front().ends_with(" and 2 more"));
}

TEST_CASE("a lossy name that the graph does not have is an error") {
  const Crossing crossing("/cpu:1");
  const auto error_of = [&](const std::string& name) {
    Warned warned = session_over(crossing.graph, "cpu:2", {name});
    return warned.session->run({{"x", crossing.feed}}, {"there:0"})
        .status()
        .to_string();
  };
  CHECK(error_of("herex:0") ==
        "NotFound: [lossy] [graph] no node \"herex\", did you mean \"here\"?");
  CHECK(error_of("here:1").find("[lossy] ") != std::string::npos);
  CHECK(error_of("here:x").find("InvalidArgument: [lossy] ") == 0);
}
