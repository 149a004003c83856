#include "apps/examples/fortunes/text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "apps/shared/io/file.h"
#include "tests/temp_folder.h"

using namespace tagflow;
using namespace tagflow::fortunes;
namespace fs = std::filesystem;

namespace {

struct Folder : tagflow::testing::TempFolder {
  Folder() : TempFolder("fortunes") {}
  void write(const char* name, const char* text) const {
    REQUIRE(io::write_file(path() / name, text).ok());
  }
};

std::vector<int32_t> values(const Tensor& tensor) {
  const auto flat = tensor.flat<int32_t>();
  return {flat.begin(), flat.end()};
}

}  // namespace

TEST_CASE("fortunes: symbols are ASCII characters, and lines have ends") {
  CHECK(symbols_of("a ~\tb\n") == Symbols{67, 2, 96, 2, 68, 1});
  CHECK(symbols_of("\xc3\xa4\r\x08").empty());
  std::string all;
  for (char c = ' '; c < 127; ++c) all += c;
  CHECK(text_of(symbols_of(all)) == all);
  const Symbols symbols = symbols_of(all);
  CHECK(*std::max_element(symbols.begin(), symbols.end()) == kSymbols - 1);
  CHECK(text_of({67, kEnd, 68}) == "a");
  CHECK(text_of({-5, 67, 1000, 1}) == "a\n");
}

TEST_CASE("fortunes: texts are between lines of a percent sign") {
  const Folder folder;
  folder.write("b", "three\n%\n%\nfour %\nand more\n\n");
  folder.write("a", "%\none\n%\ntwo\n%\n");
  folder.write("a.dat", "no text");
  fs::create_directories(folder.path() / "off");
  const auto texts = read_fortunes(folder.path());
  REQUIRE_MESSAGE(texts.ok(), texts.status().to_string());
  std::vector<std::string> read;
  for (const Symbols& text : *texts) read.push_back(text_of(text));
  CHECK(read ==
        std::vector<std::string>{"one", "two", "three", "four %\nand more"});
}

TEST_CASE("a folder without texts is refused") {
  const Folder folder;
  auto texts = read_fortunes(folder.path() / "nowhere");
  CHECK(texts.status().code() == Code::kNotFound);
  folder.write("empty", "%\n\n%\n");
  texts = read_fortunes(folder.path());
  CHECK(texts.status().code() == Code::kInvalidArgument);
  CHECK(texts.status().to_string().find("has a text") != std::string::npos);
}

TEST_CASE("fortunes: pieces of a stream follow each other, over all texts") {
  std::vector<Symbols> texts;
  for (int32_t i = 0; i < 50; ++i) texts.push_back(Symbols(5, i + 1));
  auto streams = Streams::create(texts, 3, 7, 1);
  REQUIRE_MESSAGE(streams.ok(), streams.status().to_string());
  // 300 symbols: 100 in each stream, 14 pieces of 7.
  REQUIRE(streams->steps_per_epoch() == 14);
  std::map<int32_t, int> counts;
  std::vector<Symbols> epochs(2);
  for (int64_t step = 1; step <= 28; ++step) {
    CHECK(streams->goes_on(step) == (step != 1 && step != 15));
    const auto piece = values(streams->at(step));
    REQUIRE(piece.size() == 3 * 8);
    if (streams->goes_on(step + 1)) {
      const auto next = values(streams->at(step + 1));
      for (size_t row = 0; row < 3; ++row)
        CHECK(piece[row * 8 + 7] == next[row * 8]);
    }
    for (size_t i = 0; i < piece.size(); ++i) {
      if (i % 8 == 7) continue;
      epochs[step <= 14 ? 0 : 1].push_back(piece[i]);
      if (step <= 14) ++counts[piece[i]];
    }
  }
  CHECK(epochs[0] != epochs[1]);
  // Seven or less of each text are cut off at the end of a stream.
  CHECK(counts.size() >= 48);
  auto later = Streams::create(texts, 3, 7, 1);
  CHECK(values(later->at(20)) == values(streams->at(20)));
  CHECK_FALSE(Streams::create(texts, 50, 7, 1).ok());
  CHECK_FALSE(Streams::create(texts, 0, 7, 1).ok());
}
