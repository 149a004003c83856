# Finds FarmHash, which Debian ships without a CMake config: FarmHash_FOUND,
# FarmHash::FarmHash.

include("${CMAKE_CURRENT_LIST_DIR}/PlainLibrary.cmake")
find_plain_library(FarmHash HEADER farmhash.h LIBRARIES farmhash)
