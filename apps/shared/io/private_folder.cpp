#include "apps/shared/io/private_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "graph/write_error.h"

namespace tagflow::io {

namespace fs = std::filesystem;

Result<PrivateFolder> PrivateFolder::make() {
  std::error_code code;
  const fs::path all = fs::temp_directory_path(code);
  std::string pattern = (all / kPrefix).string() + "XXXXXX";
  if (!code && mkdtemp(pattern.data()) != nullptr)
    return PrivateFolder(pattern);
  const int number = code ? code.value() : errno;
  return error(code_of_write(number, Code::kPermissionDenied),
               "[file] cannot make a folder in \"{}\": {}", all.string(),
               code ? code.message() : std::strerror(number));
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace tagflow::io
