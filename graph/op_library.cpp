#include "graph/op_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "graph/fault.h"

namespace tagflow::graph {
namespace {

namespace fs = std::filesystem;

// Whether all that a 64-bit ELF file has the system map lies in the file. The
// system does not look: it ends the process where the rest is touched.
bool is_whole(const std::string& path, uint64_t size) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return true;  // dlopen() says what it is
  file.seekg(std::streamoff(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!file.read(reinterpret_cast<char*>(&part), sizeof(part))) return false;
    if (part.p_offset > size || part.p_filesz > size - part.p_offset)
      return false;
  }
  return true;
}

Result<void*> open_library(const std::string& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found)
    return error(Code::kNotFound, "there is no such file");
  if (!fs::exists(status))
    return invalid_argument("it cannot be looked up: {}", failure.message());
  // Opening a pipe would block.
  if (!fs::is_regular_file(status))
    return invalid_argument("it is not a regular file");
  const uintmax_t size = fs::file_size(path, failure);
  if (!failure && !is_whole(path, size))
    return invalid_argument("it is cut off");
  // dlopen() would search LD_LIBRARY_PATH for a name without a folder.
  const bool has_folder = path.find('/') != std::string::npos;
  const std::string file = has_folder ? path : "./" + path;
  // Resolves all symbols now: a missing one would end the process on first use.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return invalid_argument("it cannot be loaded: {}", dlerror());
  return library;
}

// Checks that the library uses this copy of tagflow.
Status check(const OpLibrary& library) {
  constexpr std::string_view kVersion = TAGFLOW_OP_LIBRARY_VERSION;
  if (library.version == nullptr || library.registry == nullptr ||
      library.add == nullptr)
    return invalid_argument("its TAGFLOW_OP_LIBRARY is incomplete");
  if (library.version != kVersion)
    return error(Code::kFailedPrecondition,
                 "it was built for tagflow {}, and this is tagflow {}",
                 library.version, kVersion);
  if (library.op_def_size != sizeof(OpDef))
    return error(
        Code::kFailedPrecondition,
        "it was built with another standard library than this tagflow, "
        "or another mode of it");
  if (&library.registry() != &OpRegistry::global())
    return error(Code::kFailedPrecondition,
                 "it contains a tagflow of its own, whose ops the program "
                 "cannot see: it must be linked without one");
  return {};
}

Status add_ops(const OpLibrary& library) {
  const std::vector<std::string> before = OpRegistry::global().names();
  const Status status = guarded([&] { return library.add(); });
  if (status.ok()) return status;
  const std::vector<std::string> after = OpRegistry::global().names();
  std::vector<std::string> added;
  std::ranges::set_difference(after, before, std::back_inserter(added));
  if (added.empty()) return status;
  return error(status.code(), "{}; ops that were added before stay: {}",
               status.message(), fmt::join(added, ", "));
}

// What TAGFLOW_OP_LIBRARY defines, or null.
const OpLibrary* find_entry(void* library) {
  void* const found = dlsym(library, "tagflow_op_library");
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (found == nullptr ||
      dladdr1(found, &info,
              reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
              RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr || symbol->st_size < sizeof(OpLibrary) ||
      ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT)
    return nullptr;
  return static_cast<const OpLibrary*>(found);
}

Status use_library(void* library) {
  const OpLibrary* const entry = find_entry(library);
  if (entry == nullptr)
    return invalid_argument(
        "it is not an op library: it lacks TAGFLOW_OP_LIBRARY");
  TAGFLOW_RETURN_IF_ERROR(check(*entry));
  return add_ops(*entry);
}

}  // namespace

Status load_op_library(const std::string& path) {
  // Of a library's code that runs here, as its add().
  static thread_local bool is_loading = false;
  if (is_loading)
    return error(Code::kFailedPrecondition,
                 "[op library] \"{}\": an op library cannot load another",
                 path);
  static std::mutex mutex;
  // The system has one handle per file, for all paths to it.
  static auto* const loaded = new std::map<void*, std::optional<Status>>;
  const std::lock_guard lock(mutex);
  const std::string prefix = fmt::format("[op library] \"{}\": ", path);
  Result<void*> library = open_library(path);
  if (!library.ok()) return std::move(library).status().with_prefix(prefix);
  std::optional<Status>& known = (*loaded)[*library];
  if (!known) {
    is_loading = true;
    const struct Loaded {
      ~Loaded() { is_loading = false; }
    } at_end;
    known = use_library(*library).with_prefix(prefix);
  }
  return *known;
}

}  // namespace tagflow::graph
