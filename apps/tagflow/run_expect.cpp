#include "apps/tagflow/run_expect.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "apps/shared/io/npz.h"
#include "apps/tagflow/conform/case.h"
#include "apps/tagflow/conform/compare.h"
#include "apps/tagflow/model/value_type.h"
#include "graph/storage_type.h"

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

Status report_all(const std::vector<std::string>& differences) {
  if (differences.empty()) return {};
  return invalid_argument("[--expect] {}", fmt::join(differences, "; "));
}

}  // namespace

Result<ExpectedResults> ExpectedResults::read(
    const std::string& path, std::span<const FetchName> names,
    std::span<const graph::Endpoint> fetches) {
  ExpectedResults expected;
  std::vector<std::string> differences;
  for (size_t i = 0; i < names.size(); ++i) {
    const ValueType type = value_type_of(fetches[i]);
    auto value = read_expected(path, names[i], names.size() == 1, type.dtype);
    if (!value.ok())
      return std::move(value).status().with_prefix("[--expect] ");
    if (value->dtype() != storage_type(type.dtype) ||
        !type.shape.accepts(value->shape()))
      differences.push_back(fmt::format(
          "{} is {}{}, but what is expected is {}", names[i].label,
          dtype_name(type.dtype), type.shape.to_string(), value->describe()));
    expected.values_.push_back(std::move(*value));
  }
  TAGFLOW_RETURN_IF_ERROR(report_all(differences));
  return expected;
}

Status ExpectedResults::check(std::span<const FetchName> names,
                              std::span<const Tensor> results) const {
  std::vector<std::string> differences;
  for (size_t i = 0; i < values_.size() && i < results.size(); ++i) {
    const Status same = compare(results[i], values_[i]);
    if (!same.ok())
      differences.push_back(
          fmt::format("{}: {}", names[i].label, same.message()));
  }
  return report_all(differences);
}

}  // namespace tagflow::apps
