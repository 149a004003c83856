# Finds libzip: LibZip_FOUND, LibZip::LibZip. Debian's CMake config of it wants
# programs that the library does not need.

include("${CMAKE_CURRENT_LIST_DIR}/PlainLibrary.cmake")
find_plain_library(LibZip HEADER zip.h LIBRARIES zip)
