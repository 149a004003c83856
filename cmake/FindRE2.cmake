# Finds RE2, which Debian ships without a CMake config: RE2_FOUND, RE2::RE2.

include("${CMAKE_CURRENT_LIST_DIR}/PlainLibrary.cmake")
find_plain_library(RE2 HEADER re2/re2.h LIBRARIES re2)
