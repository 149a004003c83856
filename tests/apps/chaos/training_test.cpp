#include "apps/chaos/training.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "actors/checkpoint/saver.h"
#include "actors/session/session.h"
#include "graph/builder/builder.h"
#include "tests/temp_folder.h"

namespace tagflow::chaos {
namespace {

namespace fs = std::filesystem;

// Saves a variable of that value to the folder, as of the steps.
void save(const fs::path& folder, float value,
          std::initializer_list<int64_t> steps) {
  graph::Graph graph;
  const graph::Scope s(graph);
  const auto w =
      graph::ops::variable(s.named("w"), DataType::kFloat, PartialShape({}));
  graph::ops::assign(s.named("init"), w, graph::ops::constant(s, value));
  actors::SessionOptions options;
  options.seed = 3;
  auto session = actors::Session::create(options).value();
  REQUIRE(session->extend(graph).ok());
  REQUIRE(session->run({}, {}, {"init"}).ok());
  auto saver = actors::Saver::create(*session,
                                     {.folder = folder.string(), .sync = false})
                   .value();
  for (const int64_t step : steps) {
    REQUIRE(saver->save(step).ok());
    REQUIRE(saver->wait().ok());
  }
  REQUIRE(saver->close().ok());
}

TEST_CASE("checkpoints with the bits of the undisturbed one pass, no others") {
  const testing::TempFolder temp("chaos_training");
  const fs::path undisturbed = temp.path() / "undisturbed";
  save(undisturbed, 0.f, {9});
  const auto check = [&](const std::string& name, int64_t step) {
    return check_checkpoints(temp.path() / name, undisturbed, step);
  };
  save(temp.path() / "same", 0.f, {4, 9});
  CHECK(check("same", 9).ok());
  CHECK(check("same", 4).message().find("not of step 4") != std::string::npos);
  save(temp.path() / "other", 1.f, {9});
  CHECK(check("other", 9).message().starts_with("[chaos] w: float[]"));
  // An equal number has other bits.
  save(temp.path() / "negative", -0.f, {9});
  CHECK(check("negative", 9).message() == "[chaos] w has other bits");
  // An older one that the list names is torn.
  const fs::path torn =
      temp.path() / "same" / "model.ckpt-4.data-00000-of-00001";
  fs::resize_file(torn, fs::file_size(torn) - 1);
  CHECK(check("same", 9).code() == Code::kDataLoss);
  CHECK(check("nowhere", 9).code() == Code::kNotFound);
}

TEST_CASE("the number of a step is read from its lines, and from no others") {
  CHECK(step_of("step 12: loss = float[] 0.5") == 12);
  CHECK(step_of("step 12") == 0);
  CHECK(step_of("steps: 3") == 0);
  CHECK(step_of("") == 0);
}

}  // namespace
}  // namespace tagflow::chaos
