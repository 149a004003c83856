// A main() for fuzz targets without libFuzzer: runs the target once over the
// empty input and once over every file named, or below a folder named.
// A finding is a crash; the asan preset shows more of them.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size);

namespace {

namespace fs = std::filesystem;

bool replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::cerr << "cannot read " << path << '\n';
    return false;
  }
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  // Of exactly its size, so that a read past the end is seen.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  std::cout << path.filename().string() << std::endl;
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint8_t nothing = 0;
  LLVMFuzzerTestOneInput(&nothing, 0);
  bool ok = true;
  for (int i = 1; i < argc; ++i) {
    const fs::path path = argv[i];
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::recursive_directory_iterator(path)) {
        if (entry.is_regular_file()) ok = replay(entry.path()) && ok;
      }
    } else {
      ok = replay(path) && ok;
    }
  }
  return ok ? 0 : 1;
}
