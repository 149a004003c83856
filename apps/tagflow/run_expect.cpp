#include "apps/tagflow/run_expect.h"

#include <filesystem>

#include "apps/shared/io/npz.h"
#include "apps/tagflow/conform/case.h"
#include "apps/tagflow/conform/compare.h"

namespace tagflow::apps {
namespace {

Result<Tensor> read_expected(const std::filesystem::path& path,
                             const FetchName& name, bool is_only,
                             DataType dtype) {
  const std::string extension = path.extension();
  if (extension == ".npz") return io::read_npz(path, name.stem);
  const bool is_file = extension == ".npy" || extension == ".json";
  if (is_file && !is_only)
    return invalid_argument("{} has one result, but several are fetched",
                            path.string());
  if (is_file) return load_case_tensor(path);
  return load_case_tensor(
      path / (name.stem + (dtype == DataType::kString ? ".json" : ".npy")));
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
