#include "apps/tagflow/run_expect.h"

#include <filesystem>

#include "apps/shared/io/file.h"
#include "apps/shared/io/json_tensor.h"
#include "apps/shared/io/npy.h"
#include "apps/shared/io/npz.h"
#include "apps/tagflow/conform/compare.h"

namespace tagflow::apps {
namespace {

Result<Tensor> read_strings(const std::filesystem::path& path) {
  TAGFLOW_ASSIGN(const std::string text, io::read_file(path));
  auto tensor = io::parse_string_tensor(text);
  if (!tensor.ok())
    return std::move(tensor).status().with_prefix(path.string() + ": ");
  return tensor;
}

Result<Tensor> read_expected(const std::filesystem::path& path,
                             const FetchName& name, bool is_only,
                             DataType dtype) {
  const std::string extension = path.extension();
  if (extension == ".npz") return io::read_npz(path, name.stem);
  const bool is_file = extension == ".npy" || extension == ".json";
  if (is_file && !is_only)
    return invalid_argument("{} has one result, but several are fetched",
                            path.string());
  if (dtype == DataType::kString)
    return read_strings(is_file ? path : path / (name.stem + ".json"));
  return io::read_npy(is_file ? path : path / (name.stem + ".npy"));
}

}  // namespace

Status check_expected(const std::string& path, std::span<const FetchName> names,
                      std::span<const Tensor> results) {
  std::string differences;
  for (size_t i = 0; i < names.size() && i < results.size(); ++i) {
    auto expected =
        read_expected(path, names[i], names.size() == 1, results[i].dtype());
    if (!expected.ok())
      return std::move(expected).status().with_prefix("[--expect] ");
    const Status same = compare(results[i], *expected);
    if (!same.ok())
      differences += fmt::format("{}{}: {}", differences.empty() ? "" : "; ",
                                 names[i].label, same.message());
  }
  if (differences.empty()) return {};
  return invalid_argument("[--expect] {}", differences);
}

}  // namespace tagflow::apps
