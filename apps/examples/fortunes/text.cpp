#include "apps/examples/fortunes/text.h"

#include <algorithm>

#include "apps/shared/io/file.h"
#include "apps/shared/training/shuffle.h"

namespace tagflow::fortunes {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kLineEnd = 1, kSpace = 2;

// Adds the texts between the lines "%".
void add_texts(std::string_view file, std::vector<Symbols>& texts) {
  while (!file.empty()) {
    size_t end = file.starts_with("%\n") ? 0 : file.find("\n%\n");
    const std::string_view text = file.substr(0, end);
    Symbols symbols = symbols_of(text);
    while (!symbols.empty() && symbols.back() == kLineEnd) symbols.pop_back();
    if (!symbols.empty()) texts.push_back(std::move(symbols));
    if (end == std::string_view::npos) return;
    file.remove_prefix(file.find("%\n", end) + 2);
  }
}

Result<std::vector<fs::path>> text_files(const fs::path& folder) {
  std::error_code error_code;
  std::vector<fs::path> files;
  fs::directory_iterator entry(folder, error_code);
  for (; !error_code && entry != fs::directory_iterator();
       entry.increment(error_code)) {
    std::error_code none;
    if (!entry->path().has_extension() && entry->is_regular_file(none))
      files.push_back(entry->path());
  }
  if (error_code)
    return error(error_code == std::errc::no_such_file_or_directory
                     ? Code::kNotFound
                     : Code::kPermissionDenied,
                 "[fortunes] cannot read the folder \"{}\": {}",
                 folder.string(), error_code.message());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Symbols symbols_of(std::string_view text) {
  Symbols symbols;
  for (const char c : text) {
    if (c == '\n') symbols.push_back(kLineEnd);
    if (c == '\t') symbols.push_back(kSpace);
    if (c >= ' ' && c <= '~') symbols.push_back(kSpace + (c - ' '));
  }
  return symbols;
}

std::string text_of(const Symbols& symbols) {
  std::string text;
  for (const int32_t symbol : symbols) {
    if (symbol == kEnd) break;
    if (symbol == kLineEnd) text += '\n';
    if (symbol >= kSpace && symbol < kSymbols)
      text += char(' ' + (symbol - kSpace));
  }
  return text;
}

Result<std::vector<Symbols>> read_fortunes(const fs::path& folder) {
  TAGFLOW_ASSIGN(const std::vector<fs::path> files, text_files(folder));
  std::vector<Symbols> texts;
  for (const fs::path& file : files) {
    TAGFLOW_ASSIGN(const std::string bytes, io::read_file(file));
    add_texts(bytes, texts);
  }
  if (texts.empty())
    return invalid_argument("[fortunes] no file of \"{}\" has a text",
                            folder.string());
  return texts;
}

bool is_held_out(const Symbols& text) {
  // FNV-1a of 64 bits.
  uint64_t hash = 0xcbf29ce484222325;
  for (const int32_t symbol : text)
    hash = (hash ^ uint64_t(symbol)) * 0x100000001b3;
  return hash % 20 == 0;
}

Symbols joined(const std::vector<Symbols>& texts) {
  Symbols all = {kEnd};
  for (const Symbols& text : texts) {
    all.insert(all.end(), text.begin(), text.end());
    all.push_back(kEnd);
  }
  return all;
}

Result<Streams> Streams::create(std::vector<Symbols> texts, int64_t streams,
                                int64_t piece, uint64_t seed) {
  const int64_t symbols = int64_t(joined(texts).size()) - 1;
  if (streams < 1 || piece < 1 || symbols / streams < piece)
    return invalid_argument(
        "[fortunes] {} symbols are too few for {} streams of pieces of {}",
        symbols, streams, piece);
  Streams made;
  made.texts_ = std::move(texts);
  made.streams_ = streams;
  made.piece_ = piece;
  made.steps_per_epoch_ = symbols / streams / piece;
  made.seed_ = seed;
  return made;
}

Tensor Streams::at(int64_t step) {
  if (const int64_t epoch = (step - 1) / steps_per_epoch_; epoch != epoch_) {
    std::vector<Symbols> texts = texts_;
    std::mt19937_64 random = training::random_of_epoch(seed_, epoch);
    training::shuffle(texts, random);
    symbols_ = joined(texts);
    epoch_ = epoch;
  }
  const int64_t length = (int64_t(symbols_.size()) - 1) / streams_;
  const int64_t first = (step - 1) % steps_per_epoch_ * piece_;
  Tensor pieces = Tensor::make(DataType::kInt32, {streams_, piece_ + 1});
  int32_t* to = pieces.mutable_data<int32_t>();
  for (int64_t i = 0; i < streams_; ++i)
    to = std::copy_n(symbols_.begin() + i * length + first, piece_ + 1, to);
  return pieces;
}

}  // namespace tagflow::fortunes
