#include "apps/shared/training/history.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <limits>

#include "apps/shared/io/file.h"
#include "tests/temp_path.h"

namespace tagflow::training {
namespace {

namespace fs = std::filesystem;
using Set = History::Set;

// A file that goes with the test.
struct TempFile {
  fs::path path = testing::temp_path("history.csv");
  TempFile() { fs::remove(path); }
  ~TempFile() { fs::remove(path); }

  std::string text() const {
    auto text = io::read_file(path);
    REQUIRE(text.ok());
    return std::move(text).value();
  }
  void write(std::string_view text) const {
    REQUIRE(io::write_file(path, text).ok());
  }
  Result<History> open(int64_t last_step) const {
    return History::open(path, {"loss", "accuracy"}, last_step);
  }
};

TEST_CASE("a history that is opened again has the same numbers, to the bit") {
  const TempFile file;
  auto history = file.open(0);
  REQUIRE(history.ok());
  const float third = 1.0f / 3, tiny = std::numeric_limits<float>::min();
  history->add(1, Set::kTrain, {third, 0.5f});
  REQUIRE(history->write().ok());
  history->add(2, Set::kTrain, {tiny, 1});
  history->add(2, Set::kTest, {0.1f, 0.25f});
  REQUIRE(history->write().ok());
  CHECK(file.text() ==
        "step,set,loss,accuracy\n1,train,0.33333334,0.5\n"
        "2,train,1.1754944e-38,1\n2,test,0.1,0.25\n");
  const auto again = file.open(2);
  REQUIRE(again.ok());
  REQUIRE(again->rows().size() == 3);
  CHECK(again->rows()[0].values == std::vector<float>{third, 0.5f});
  CHECK(again->rows()[1].values == std::vector<float>{tiny, 1});
  CHECK(again->rows()[2].set == Set::kTest);
}

TEST_CASE("a history that is opened forgets lines after the checkpoint") {
  const TempFile file;
  const std::string first = "step,set,loss,accuracy\n1,train,2,0\n";
  file.write(first + "2,train,1,0\n3,train,1");
  REQUIRE(file.open(1).ok());
  CHECK(file.text() == first);
  REQUIRE(file.open(0).ok());
  CHECK(file.text() == "step,set,loss,accuracy\n");
}

TEST_CASE("a file that is not a history is not written over") {
  const TempFile file;
  const auto message_of = [&](const std::string& text) {
    file.write(text);
    const auto history = file.open(9);
    REQUIRE_FALSE(history.ok());
    CHECK(history.status().code() == Code::kDataLoss);
    CHECK(file.text() == text);
    return std::string(history.status().message());
  };
  const std::string header = "step,set,loss,accuracy\n";
  CHECK(message_of("name,age\n").find("does not begin with \"step,set,loss") !=
        std::string::npos);
  CHECK(message_of(header + "x,train,1,1\n").find("\"x\" is not a step") !=
        std::string::npos);
  CHECK(message_of(header + "1,train,1,1\n2,both,1,1\n").find("line 3") !=
        std::string::npos);
  CHECK(
      message_of(header + "1,train,one,1\n").find("\"one\" is not a number") !=
      std::string::npos);
  CHECK(message_of(header + "1,train,1\n").find("1 numbers, not 2") !=
        std::string::npos);
  CHECK(message_of(header + "\n").find("is not a step") != std::string::npos);
}

TEST_CASE("a history writes in the next call what it could not write before") {
  const TempFile file;
  auto history = file.open(0);
  REQUIRE(history.ok());
  fs::remove(file.path);
  fs::create_directory(file.path);
  history->add(1, Set::kTrain, {1, 0});
  const Status failed = history->write();
  CHECK(failed.code() == Code::kDataLoss);
  CHECK(failed.message().find("Is a directory") != std::string::npos);
  fs::remove(file.path);
  REQUIRE(history->write().ok());
  CHECK(file.text() == "1,train,1,0\n");
}

}  // namespace
}  // namespace tagflow::training
