#include "apps/shared/io/npz.h"

#include <fmt/ranges.h>
#include <zip.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/shared/io/file.h"
#include "apps/shared/io/npy.h"
#include "graph/fault.h"

namespace tagflow::io {
namespace {

constexpr const char* kSuffix = ".npy";
constexpr time_t kFirstTime = 315532800;  // 1980, where the format begins

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct Close {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

Status damaged(const std::filesystem::path& path, std::string_view why) {
  return error(Code::kDataLoss, "[npz] \"{}\": {}", path.string(), why);
}

Result<Archive> open(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code))
    return error(Code::kNotFound, "[npz] no file \"{}\"", path.string());
  int why = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY, &why);
  if (archive != nullptr) return Archive(archive);
  zip_error_t text;
  zip_error_init_with_code(&text, why);
  Status status = damaged(path, zip_error_strerror(&text));
  zip_error_fini(&text);
  return status;
}

std::string names_in(zip_t* archive) {
  constexpr zip_int64_t kMost = 20;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  std::vector<std::string> names;
  for (zip_int64_t i = 0; i < std::min(count, kMost); ++i) {
    const char* text = zip_get_name(archive, zip_uint64_t(i), 0);
    std::string name = text != nullptr ? text : "";
    if (name.ends_with(kSuffix)) name.resize(name.size() - 4);
    names.push_back(std::move(name));
  }
  return fmt::format("\"{}\"{}", fmt::join(names, "\", \""),
                     count > kMost ? ", ..." : "");
}

// The bytes of a file in the archive.
Result<std::string> read_entry(const std::filesystem::path& path,
                               zip_t* archive, const std::string& name) {
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat(archive, (name + kSuffix).c_str(), 0, &stat) != 0)
    return error(Code::kNotFound, "[npz] \"{}\" has no array \"{}\"; it has {}",
                 path.string(), name, names_in(archive));
  // Deflate makes no more of a byte.
  constexpr zip_uint64_t kMostOfByte = 1032;
  constexpr zip_uint64_t kWanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
  if ((stat.valid & kWanted) != kWanted ||
      stat.size / kMostOfByte > stat.comp_size)
    return damaged(path, "it claims a size that it cannot have");
  if (stat.size > kMaxFileBytes)
    return error(Code::kResourceExhausted,
                 "[npz] \"{}\": \"{}\" has {} bytes, the limit is {}",
                 path.string(), name, stat.size, kMaxFileBytes);
  const std::unique_ptr<zip_file_t, Close> file(
      zip_fopen_index(archive, stat.index, 0));
  if (file == nullptr) return damaged(path, zip_strerror(archive));
  std::string bytes(stat.size, '\0');
  for (size_t done = 0; done < bytes.size();) {
    const zip_int64_t count =
        zip_fread(file.get(), bytes.data() + done, bytes.size() - done);
    if (count <= 0) return damaged(path, zip_file_strerror(file.get()));
    done += size_t(count);
  }
  // libzip compares the checksum when it has read the end.
  char more = 0;
  if (zip_fread(file.get(), &more, 1) != 0)
    return damaged(path, zip_file_strerror(file.get()));
  return bytes;
}

}  // namespace

Result<Tensor> read_npz(const std::filesystem::path& path,
                        const std::string& name) try {
  TAGFLOW_ASSIGN(const Archive archive, open(path));
  TAGFLOW_ASSIGN(const std::string bytes,
                 read_entry(path, archive.get(), name));
  Result<Tensor> tensor = parse_npy(bytes);
  if (tensor.ok()) return tensor;
  return std::move(tensor).status().with_prefix(
      fmt::format("\"{}\": \"{}\": ", path.string(), name));
} catch (...) {
  return current_fault("npz");
}

Status write_npz(const std::filesystem::path& path,
                 std::span<const NamedTensor> arrays) try {
  if (arrays.empty())
    return invalid_argument("[npz] \"{}\" would have no array", path.string());
  zip_error_t why;
  zip_error_init(&why);
  const auto failed = [&](std::string_view text) {
    return error(Code::kUnknown, "[npz] cannot write \"{}\": {}", path.string(),
                 text);
  };
  // The archive is made in memory, so that write_file() replaces the file.
  zip_source_t* whole = zip_source_buffer_create(nullptr, 0, 0, &why);
  if (whole == nullptr) return failed(zip_error_strerror(&why));
  zip_source_keep(whole);
  const std::unique_ptr<zip_source_t, decltype(&zip_source_free)> kept(
      whole, &zip_source_free);
  zip_t* opened = zip_open_from_source(whole, ZIP_TRUNCATE, &why);
  if (opened == nullptr) {
    zip_source_free(whole);
    return failed(zip_error_strerror(&why));
  }
  Archive archive(opened);
  std::set<std::string> names;
  std::vector<std::string> files;  // until the archive is closed
  files.reserve(arrays.size());
  for (const auto& [name, tensor] : arrays) {
    if (!names.insert(name).second)
      return invalid_argument("[npz] two arrays are called \"{}\"", name);
    Result<std::string> bytes = format_npy(tensor);
    if (!bytes.ok()) return std::move(bytes).status().with_prefix(name + ": ");
    files.push_back(*std::move(bytes));
    zip_source_t* source = zip_source_buffer(archive.get(), files.back().data(),
                                             files.back().size(), 0);
    const zip_int64_t index =
        source == nullptr
            ? -1
            : zip_file_add(archive.get(), (name + kSuffix).c_str(), source,
                           ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return failed(zip_strerror(archive.get()));
    }
    const auto number = zip_uint64_t(index);
    zip_set_file_compression(archive.get(), number, ZIP_CM_STORE, 0);
    // The same arrays are the same bytes, whenever they are written.
    zip_file_set_mtime(archive.get(), number, kFirstTime, 0);
  }
  if (zip_close(archive.get()) != 0) return failed(zip_strerror(archive.get()));
  archive.release();
  if (zip_source_open(whole) != 0) return failed("it cannot be read again");
  zip_stat_t stat;
  zip_stat_init(&stat);
  std::string bytes;
  if (zip_source_stat(whole, &stat) == 0) bytes.resize(stat.size);
  const zip_int64_t count = zip_source_read(whole, bytes.data(), bytes.size());
  zip_source_close(whole);
  if (count < 0 || size_t(count) != bytes.size() || bytes.empty())
    return failed("it cannot be read again");
  return write_file(path, bytes);
} catch (...) {
  return current_fault("npz");
}

}  // namespace tagflow::io
